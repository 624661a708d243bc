import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * Decides as a broker does. Arguments: super.users, allow.everyone.if.no.acl.found. Lines on standard input, fields
 * separated by tabs: "ACL id type name pattern principal host operation permission" and
 * "ASK principal host operation type name". For each question one line: ALLOWED or DENIED, TAB, the id of the entry
 * that decided, or else the simple name of the rule's class.
 */
public class Authorize {
    public static void main(String[] args) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        addMetrics(authorizer);
        Map<String, String> configs = new HashMap<>();
        configs.put("node.id", "1");
        configs.put("super.users", args[0]);
        configs.put("allow.everyone.if.no.acl.found", args[1]);
        authorizer.configure(configs);
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        Map<StandardAcl, Uuid> ids = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        boolean loaded = false;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            if (f[0].equals("ACL")) {
                StandardAcl acl = new StandardAcl(ResourceType.valueOf(f[2]), f[3], PatternType.valueOf(f[4]), f[5],
                    f[6], AclOperation.valueOf(f[7]), AclPermissionType.valueOf(f[8]));
                acls.put(Uuid.fromString(f[1]), acl);
                ids.put(acl, Uuid.fromString(f[1]));
                continue;
            }
            if (!loaded) {
                authorizer.loadSnapshot(acls);
                authorizer.completeInitialLoad();
                loaded = true;
            }
            KafkaPrincipal principal = new KafkaPrincipal(f[1].substring(0, f[1].indexOf(':')),
                f[1].substring(f[1].indexOf(':') + 1));
            Action action = new Action(AclOperation.valueOf(f[3]),
                new ResourcePattern(ResourceType.valueOf(f[4]), f[5], PatternType.LITERAL), 1, false, false);
            AuthorizableRequestContext context = context(principal, InetAddress.getByName(f[2]));
            out.append(authorizer.authorize(context, List.of(action)).get(0)).append('\t');
            out.append(rule(authorizer, principal, f[2], action, ids)).append('\n');
        }
        System.out.print(out);
    }

    /** From 4.1 on an authorizer counts what it decides, and cannot do without. */
    private static void addMetrics(StandardAuthorizer authorizer) throws Exception {
        for (Method method : StandardAuthorizer.class.getMethods()) {
            if (method.getName().equals("withPluginMetrics")) {
                Object metrics = Class.forName("org.apache.kafka.common.metrics.internals.PluginMetricsImpl")
                    .getConstructor(Metrics.class, Map.class).newInstance(new Metrics(), Map.of());
                method.invoke(authorizer, metrics);
            }
        }
    }

    private static AuthorizableRequestContext context(KafkaPrincipal principal, InetAddress address) {
        return (AuthorizableRequestContext) Proxy.newProxyInstance(Authorize.class.getClassLoader(),
            new Class<?>[] {AuthorizableRequestContext.class}, (proxy, method, given) -> {
                switch (method.getName()) {
                    case "principal": return principal;
                    case "clientAddress": return address;
                    case "requestType": return 3;
                    default: return method.getReturnType() == int.class ? (Object) 0 : null;
                }
            });
    }

    /** What decided, as the audit log would say it; nobody outside may ask for it. */
    private static String rule(StandardAuthorizer authorizer, KafkaPrincipal principal, String host, Action action,
                               Map<StandardAcl, Uuid> ids) throws Exception {
        Field held = StandardAuthorizer.class.getDeclaredField("data");
        held.setAccessible(true);
        Object data = held.get(authorizer);
        for (Method method : data.getClass().getDeclaredMethods()) {
            if (method.getName().equals("findAclRule")) {
                method.setAccessible(true);
                Object rule = method.invoke(data, Set.of(principal, new KafkaPrincipal("User", "*")), host, action);
                if (rule.getClass().getSimpleName().equals("MatchingAclRule")) {
                    Field acl = rule.getClass().getDeclaredField("acl");
                    acl.setAccessible(true);
                    return ids.get(acl.get(rule)).toString();
                }
                return rule.getClass().getSimpleName();
            }
        }
        throw new IllegalStateException("this release has no findAclRule");
    }
}
