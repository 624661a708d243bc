import java.util.Locale;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.metadata.util.BatchFileReader.BatchAndType;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Replays a snapshot or a segment into an image with Kafka's own classes: Replay FILE [TIMES]; prints JSON lines. */
public class Replay {
    public static void main(String[] args) throws Exception {
        int times = args.length > 1 ? Integer.parseInt(args[1]) : 1;
        for (int i = 0; i < times; i++) {
            long start = System.nanoTime();
            long records = 0;
            MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            try (BatchFileReader reader = new BatchFileReader.Builder().setPath(args[0]).build()) {
                while (reader.hasNext()) {
                    BatchAndType next = reader.next();
                    if (next.isControl()) {
                        continue;
                    }
                    for (ApiMessageAndVersion record : next.batch().records()) {
                        delta.replay(record.message());
                        records++;
                    }
                }
            }
            MetadataImage image = delta.apply(new MetadataProvenance(records, 1, 1, true));
            double seconds = (System.nanoTime() - start) / 1e9;
            long partitions = image.topics().topicsById().values().stream().mapToLong(t -> t.partitions().size()).sum();
            System.out.printf(Locale.ROOT, "{\"records\": %d, \"partitions\": %d, \"seconds\": %.4f}%n",
                records, partitions, seconds);
        }
    }
}
