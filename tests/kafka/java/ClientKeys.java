import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/** Prints every property that this release's clients know, a line each. */
public final class ClientKeys {
    public static void main(String[] args) {
        Set<String> keys = new TreeSet<>(AdminClientConfig.configNames());
        keys.addAll(ConsumerConfig.configNames());
        keys.addAll(ProducerConfig.configNames());
        keys.forEach(System.out::println);
    }
}
