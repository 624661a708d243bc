import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs main classes one after another in one process, which has Kafka's classes loaded: Runner.
 *
 * Reads a line for each, words in base64 with spaces between them (a directory of more classes, which may be empty, the
 * main class, its arguments), and answers with one: the exit code, and what went to standard output and error in
 * base64. The source is the same for all releases.
 */
public class Runner {
    /** What a program ends with, by Kafka's own Exit. */
    private static final class Ended extends Error {
        final int code;

        Ended(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    /** A stream whose target changes: Scala's Console keeps the System.out that it has met first. */
    private static final class Switched extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();

        synchronized String take() {
            byte[] written = target.toByteArray();
            target = new ByteArrayOutputStream();
            return Base64.getEncoder().encodeToString(written);
        }

        @Override
        public synchronized void write(int one) {
            target.write(one);
        }

        @Override
        public synchronized void write(byte[] some, int offset, int length) {
            target.write(some, offset, length);
        }
    }

    private static final Map<String, ClassLoader> LOADERS = new HashMap<>();

    /** Whatever Kafka would end the process with ends the program instead. */
    private static void keepRunning() throws ReflectiveOperationException {
        Class<?> exit = Class.forName("org.apache.kafka.common.utils.Exit");
        Class<?> procedure = Class.forName("org.apache.kafka.common.utils.Exit$Procedure");
        Object ended = Proxy.newProxyInstance(Runner.class.getClassLoader(), new Class<?>[] {procedure}, (a, b, words) -> {
            throw new Ended((Integer) words[0]);
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, ended);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, ended);
    }

    private static ClassLoader loader(String directory) throws Exception {
        ClassLoader found = LOADERS.get(directory);
        if (found == null) {
            URL[] more = directory.isEmpty() ? new URL[0] : new URL[] {new File(directory).toURI().toURL()};
            found = new URLClassLoader(more, Runner.class.getClassLoader());
            LOADERS.put(directory, found);
        }
        return found;
    }

    private static int run(String[] words) throws Exception {
        String[] args = new String[words.length - 2];
        System.arraycopy(words, 2, args, 0, args.length);
        try {
            loader(words[0]).loadClass(words[1]).getMethod("main", String[].class).invoke(null, (Object) args);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Ended) {
                return ((Ended) thrown.getCause()).code;
            }
            thrown.getCause().printStackTrace();
            return 1;
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Switched out = new Switched();
        Switched err = new Switched();
        System.setOut(new PrintStream(out, true, "UTF-8"));
        System.setErr(new PrintStream(err, true, "UTF-8"));
        keepRunning();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
            }
            int code = run(words);
            System.out.flush();
            System.err.flush();
            answers.println(code + " " + out.take() + " " + err.take());
            answers.flush();
        }
        System.exit(0);
    }
}
