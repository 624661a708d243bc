import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints what this release's classes know of features, one level a line, separated by tabs:
 * feature, level, name or "-", the metadata.version level that it comes with, "true" if metadata changed (of
 * metadata.version only), the levels of other features that it needs ("name=level,..." or "-").
 * Then "#supported", a feature, and the lowest and the highest level that a server supports, a line each; the last line is
 * "#production", the newest metadata.version for production.
 */
public class FeatureLevels {
    public static void main(String[] args) throws Exception {
        Class<?> version = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        for (Object one : (Object[]) version.getMethod("values").invoke(null)) {
            Object level = version.getMethod("featureLevel").invoke(one);
            System.out.println("metadata.version\t" + level + "\t" + version.getMethod("version").invoke(one) + "\t"
                + level + "\t" + changed(version, one) + "\t-");
        }
        for (String name : new String[] {"Feature", "Features"}) {
            try {
                features(Class.forName("org.apache.kafka.server.common." + name), version);
            } catch (ClassNotFoundException absent) {
                continue;
            }
        }
        supported();
        System.out.println("#production\t" + version.getMethod("featureLevel").invoke(production(version)));
    }

    private static Object changed(Class<?> version, Object one) throws Exception {
        Method told;
        try {
            told = version.getDeclaredMethod("didMetadataChange");
        } catch (NoSuchMethodException absent) {
            return "-";
        }
        told.setAccessible(true);
        return told.invoke(one);
    }

    private static Object production(Class<?> version) throws Exception {
        for (String name : new String[] {"LATEST_PRODUCTION", "latestProduction", "latest"}) {
            try {
                Field field = version.getDeclaredField(name);
                return field.get(null);
            } catch (NoSuchFieldException absent) {
                // an older or a newer release
            }
            try {
                return version.getMethod(name).invoke(null);
            } catch (NoSuchMethodException absent) {
                // as above
            }
        }
        throw new IllegalStateException("no latest version");
    }

    private static void supported() throws Exception {
        Class<?> quorum = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        Map<?, ?> ranges = null;
        for (String name : new String[] {"defaultSupportedFeatureMap", "defaultFeatureMap"}) {
            for (Method method : quorum.getMethods()) {
                if (ranges == null && method.getName().equals(name)) {
                    boolean plain = method.getParameterCount() == 0;
                    ranges = (Map<?, ?>) (plain ? method.invoke(null) : method.invoke(null, false));
                }
            }
        }
        for (Map.Entry<?, ?> one : new TreeMap<>(ranges).entrySet()) {
            Object range = one.getValue();
            System.out.println("#supported\t" + one.getKey() + "\t" + range.getClass().getMethod("min").invoke(range)
                + "\t" + range.getClass().getMethod("max").invoke(range));
        }
    }

    @SuppressWarnings("unchecked")
    private static void features(Class<?> kind, Class<?> version) throws Exception {
        Class<?> level = Class.forName("org.apache.kafka.server.common.FeatureVersion");
        for (Object feature : (Iterable<Object>) kind.getField("PRODUCTION_FEATURES").get(null)) {
            for (Object one : (Object[]) kind.getMethod("featureVersions").invoke(feature)) {
                Object with = level.getMethod("bootstrapMetadataVersion").invoke(one);
                Map<String, Short> needs = new TreeMap<>((Map<String, Short>) level.getMethod("dependencies").invoke(one));
                String text = needs.isEmpty() ? "-" : needs.toString().replaceAll("[{} ]", "");
                System.out.println(kind.getMethod("featureName").invoke(feature) + "\t"
                    + level.getMethod("featureLevel").invoke(one) + "\t-\t"
                    + version.getMethod("featureLevel").invoke(with) + "\t-\t" + text);
            }
        }
    }
}
