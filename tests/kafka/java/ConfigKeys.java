import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Prints every config key that this Kafka release defines, one a line: resource type, key, type.
 *
 * The schema that a controller uses comes first. What it leaves out (dynamic broker quotas, groups and client metrics
 * in some releases) is taken from the classes that validate those keys; a class that a release lacks is passed over.
 * Reflection, so that one source serves every release.
 */
public class ConfigKeys {
    private static final String[][] EXTRA = {
        {"BROKER", "kafka.server.DynamicConfig$Broker$", "brokerConfigDef"},
        {"BROKER", "org.apache.kafka.server.config.DynamicConfig$Broker", "brokerConfigs"},
        {"BROKER", "org.apache.kafka.server.config.QuotaConfig", "brokerQuotaConfigs"},
        {"BROKER", "org.apache.kafka.server.config.QuotaConfigs", "brokerQuotaConfigs"},
        {"BROKER", "kafka.server.KafkaConfig$", "configDef"},
        {"TOPIC", "kafka.log.LogConfig$", "configDefCopy"},
        {"TOPIC", "org.apache.kafka.storage.internals.log.LogConfig", "configDefCopy"},
        {"CLIENT_METRICS", "org.apache.kafka.server.metrics.ClientMetricsConfigs", "configDef"},
        {"CLIENT_METRICS", "kafka.metrics.ClientMetricsConfigs", "configDef"},
        {"GROUP", "org.apache.kafka.coordinator.group.GroupConfig", "configDef"},
        {"GROUP", "org.apache.kafka.coordinator.group.GroupConfig", "CONFIG_DEF"},
        {"GROUP", "org.apache.kafka.coordinator.group.GroupConfig", "CONFIG"},
    };

    private static final Map<String, Map<String, String>> FOUND = new TreeMap<>();

    private static void add(String from, String type, ConfigDef def) {
        int fresh = 0;
        for (ConfigDef.ConfigKey key : def.configKeys().values()) {
            if (FOUND.computeIfAbsent(type, t -> new TreeMap<>()).put(key.name, key.type.name()) == null) {
                fresh++;
            }
        }
        System.err.println(type + " from " + from + ": " + def.configKeys().size() + " keys, " + fresh + " new");
    }

    @SuppressWarnings("unchecked")
    private static void addSchema() throws Exception {
        Object schema = Class.forName("kafka.server.KafkaRaftServer").getMethod("configSchema").invoke(null);
        Field field = schema.getClass().getDeclaredField("configDefs");
        field.setAccessible(true);
        ((Map<ConfigResource.Type, ConfigDef>) field.get(schema)).forEach((t, def) -> add("the schema", t.name(), def));
    }

    private static void addExtra(String type, String className, String member) throws Exception {
        Class<?> owner;
        try {
            owner = Class.forName(className);
        } catch (ClassNotFoundException absent) {
            return;
        }
        Object instance = className.endsWith("$") ? owner.getField("MODULE$").get(null) : null;
        for (Method method : owner.getDeclaredMethods()) {
            if (method.getName().equals(member) && method.getParameterCount() == 0) {
                method.setAccessible(true);
                add(className, type, (ConfigDef) method.invoke(instance));
            }
        }
        for (Field field : owner.getDeclaredFields()) {
            if (field.getName().equals(member) && ConfigDef.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                add(className, type, (ConfigDef) field.get(instance));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        addSchema();
        for (String[] extra : EXTRA) {
            addExtra(extra[0], extra[1], extra[2]);
        }
        FOUND.forEach((type, keys) -> keys.forEach((k, t) -> System.out.println(type + "\t" + k + "\t" + t)));
    }
}
