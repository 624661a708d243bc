import java.util.Map;
import java.util.Properties;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigResource;

/** For each argument "TYPE:NAME KEY=VALUE" a line: whether a controller would take that config, true or false. */
public class ConfigValues {
    public static void main(String[] args) {
        Properties node = new Properties();
        node.put("process.roles", "controller");
        node.put("node.id", "1");
        node.put("controller.quorum.voters", "1@localhost:9093");
        node.put("listeners", "CONTROLLER://localhost:9093");
        node.put("controller.listener.names", "CONTROLLER");
        ControllerConfigurationValidator validator = new ControllerConfigurationValidator(new KafkaConfig(node, false));
        for (String arg : args) {
            String[] words = arg.split(" ", 2), resource = words[0].split(":", 2), config = words[1].split("=", 2);
            boolean taken = true;
            try {
                validator.validate(
                    new ConfigResource(ConfigResource.Type.valueOf(resource[0]), resource[1]),
                    Map.of(config[0], config[1]),
                    Map.of());
            } catch (RuntimeException refused) {
                taken = false;
            }
            System.out.println(taken);
        }
    }
}
