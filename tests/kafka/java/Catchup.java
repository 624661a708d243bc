import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * What a node's next snapshot holds that was away from one offset to another and then caught up, by Kafka's own classes.
 *
 *   Catchup LOG AWAY END   one batch a delta before offset AWAY; all from there to END (exclusive) in one delta
 *
 * Prints the snapshot's records, one a line, as hexadecimal digits.
 */
public class Catchup {
    public static void main(String[] args) throws IOException {
        Path log = Paths.get(args[0]);
        long away = Long.parseLong(args[1]);
        long end = Long.parseLong(args[2]);
        MetadataImage image = MetadataImage.EMPTY;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        try (FileRecords records = FileRecords.open(log.toFile(), false)) {
            for (RecordBatch batch : records.batches()) {
                if (batch.isControlBatch() || batch.baseOffset() >= end) {
                    continue;
                }
                for (Record record : batch) {
                    ByteBufferAccessor value = new ByteBufferAccessor(record.value());
                    delta.replay(MetadataRecordSerde.INSTANCE.read(value, record.valueSize()).message());
                }
                if (batch.baseOffset() < away) {
                    image = delta.apply(new MetadataProvenance(batch.lastOffset(), 1, 0, true));
                    delta = new MetadataDelta.Builder().setImage(image).build();
                }
            }
        }
        image = delta.apply(new MetadataProvenance(end - 1, 1, 0, true));
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image.features().metadataVersionOrThrow()).build());
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
            System.out.println(HexFormat.of().formatHex(buffer.array()));
        }
    }
}
