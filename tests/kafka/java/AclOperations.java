import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.security.authorizer.AclEntry;

/** A line for each resource type and operation that kafka-acls.sh takes for it besides ALL: "TYPE OPERATION". */
public class AclOperations {
    public static void main(String[] args) {
        for (ResourceType type : ResourceType.values()) {
            if (type == ResourceType.UNKNOWN || type == ResourceType.ANY) {
                continue;
            }
            Set<AclOperation> operations = new TreeSet<>(AclEntry.supportedOperations(type));
            for (AclOperation operation : operations) {
                System.out.println(type + " " + operation);
            }
        }
    }
}
