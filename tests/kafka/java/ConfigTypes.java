import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Prints what this Kafka release says of every config key, one a line, separated by tabs: resource type, key, type, what
 * values are valid ("1..5", "in:a,b", "list:a,b", or nothing), default (URL-encoded; "-" for none).
 *
 * A key that several definitions have is taken from the first: the schema that a controller uses.
 */
public class ConfigTypes {
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

    private static final Map<String, String> FOUND = new TreeMap<>();

    private static Object field(Object owner, String name) throws Exception {
        for (Class<?> kind = owner.getClass(); kind != null; kind = kind.getSuperclass()) {
            for (Field field : kind.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(owner);
                }
            }
        }
        return null;
    }

    private static String listed(Object values) {
        return String.join(",", new TreeSet<>((java.util.Collection<String>) values));
    }

    private static String valid(ConfigDef.Validator validator) throws Exception {
        if (validator instanceof ConfigDef.Range) {
            Object min = field(validator, "min"), max = field(validator, "max");
            return (min == null ? "" : min) + ".." + (max == null ? "" : max);
        }
        if (validator instanceof ConfigDef.ValidString) {
            return "in:" + listed(field(validator, "validStrings"));
        }
        if (validator instanceof ConfigDef.CaseInsensitiveValidString) {
            return "IN:" + listed(field(validator, "validStrings"));
        }
        if (validator instanceof ConfigDef.ValidList) {
            Object inner = field(validator, "validString");
            return "list:" + listed(field(inner, "validStrings"));
        }
        return "";
    }

    private static void add(String type, ConfigDef def) throws Exception {
        for (ConfigDef.ConfigKey key : def.configKeys().values()) {
            Object value = key.hasDefault() ? key.defaultValue : null;
            String shown = value == null ? "-" : ConfigDef.convertToString(value, key.type);
            shown = value == null ? "-" : URLEncoder.encode(shown, StandardCharsets.UTF_8).replace("+", "%20");
            String facts = key.type.name() + "\t" + valid(key.validator) + "\t" + shown;
            // The first definition counts, unless another one says that the value is a secret.
            FOUND.merge(type + "\t" + key.name, facts, (old, other) -> other.startsWith("PASSWORD\t") ? other : old);
        }
    }

    @SuppressWarnings("unchecked")
    private static void addSchema() throws Exception {
        Object schema = Class.forName("kafka.server.KafkaRaftServer").getMethod("configSchema").invoke(null);
        for (Map.Entry<ConfigResource.Type, ConfigDef> entry :
                ((Map<ConfigResource.Type, ConfigDef>) field(schema, "configDefs")).entrySet()) {
            add(entry.getKey().name(), entry.getValue());
        }
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
                add(type, (ConfigDef) method.invoke(instance));
            }
        }
        for (Field field : owner.getDeclaredFields()) {
            if (field.getName().equals(member) && ConfigDef.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                add(type, (ConfigDef) field.get(instance));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        addSchema();
        for (String[] extra : EXTRA) {
            addExtra(extra[0], extra[1], extra[2]);
        }
        FOUND.forEach((key, facts) -> System.out.println(key + "\t" + facts));
    }
}
