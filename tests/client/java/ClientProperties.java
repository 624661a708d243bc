import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/**
 * What Java makes of texts, for comparison. Each line on standard input is {@code properties BASE64} or
 * {@code jaas BASE64} (ISO-8859-1 bytes; UTF-8 for jaas); each line of the answer is {@code error} or
 * entries KEY=VALUE in base64, sorted, separated by spaces. A JAAS entry's class and flag come as the keys @class and @flag.
 */
public class ClientProperties {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 2);
            byte[] text = Base64.getDecoder().decode(words[1]);
            String answer;
            try {
                answer = words[0].equals("jaas") ? jaas(text) : properties(text);
            } catch (IllegalArgumentException e) {
                answer = "error";
            }
            System.out.println(answer);
        }
    }

    private static String properties(byte[] text) throws Exception {
        Properties found = new Properties();
        found.load(new ByteArrayInputStream(text));
        StringBuilder made = new StringBuilder();
        for (String key : found.stringPropertyNames())
            add(made, key, found.getProperty(key));
        return made.toString().trim();
    }

    private static String jaas(byte[] text) {
        Password value = new Password(new String(text, StandardCharsets.UTF_8));
        JaasContext context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", value));
        StringBuilder made = new StringBuilder();
        for (AppConfigurationEntry entry : context.configurationEntries()) {
            add(made, "@class", String.valueOf(entry.getLoginModuleName()));
            add(made, "@flag", entry.getControlFlag().toString());
            for (Map.Entry<String, ?> option : entry.getOptions().entrySet())
                add(made, String.valueOf(option.getKey()), String.valueOf(option.getValue()));
        }
        return made.toString().trim();
    }

    private static void add(StringBuilder made, String key, String value) {
        made.append(encoded(key)).append('=').append(encoded(value)).append(' ');
    }

    private static String encoded(String text) {
        // Char by char: an encoder would replace halves of surrogate pairs that stand alone.
        ByteBuffer bytes = ByteBuffer.allocate(2 * text.length());
        bytes.asCharBuffer().put(text);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes.array());
    }
}
