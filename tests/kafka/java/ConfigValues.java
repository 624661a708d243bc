import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigResource;

/**
 * For each argument "TYPE:NAME KEY=VALUE" a line: whether a controller would take that config, true or false. Configs
 * that are set together have a line each in the argument, and those that are there already too, with a "was " before.
 */
public class ConfigValues {
    public static void main(String[] args) {
        Properties node = new Properties();
        node.put("process.roles", "controller");
        node.put("node.id", "1");
        node.put("controller.quorum.voters", "1@localhost:9093");
        node.put("listeners", "CONTROLLER://localhost:9093");
        node.put("controller.listener.names", "CONTROLLER");
        node.put("remote.log.storage.system.enable", "true");
        ControllerConfigurationValidator validator = new ControllerConfigurationValidator(new KafkaConfig(node, false));
        for (String arg : args) {
            String[] words = arg.split(" ", 2), resource = words[0].split(":", 2);
            Map<String, String> configs = new HashMap<>(), existing = new HashMap<>();
            for (String line : words[1].split("\n")) {
                boolean was = line.startsWith("was ");
                String[] config = line.substring(was ? 4 : 0).split("=", 2);
                (was ? existing : configs).put(config[0], config[1]);
            }
            boolean taken = true;
            try {
                validator.validate(
                    new ConfigResource(ConfigResource.Type.valueOf(resource[0]), resource[1]),
                    configs,
                    existing);
            } catch (RuntimeException refused) {
                taken = false;
            }
            System.out.println(taken);
        }
    }
}
