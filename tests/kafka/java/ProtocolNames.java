import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/** Prints Kafka's error codes ("error", code, name, whether it is retriable) and APIs ("api", key, name), a line each. */
public final class ProtocolNames {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            System.out.println("error " + error.code() + " " + error.name() + " " + retriable);
        }
        for (ApiKeys api : ApiKeys.values()) {
            System.out.println("api " + api.id + " " + api.name);
        }
    }
}
