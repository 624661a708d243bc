import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord.BrokerEndpoint;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.util.BatchFileWriter;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Writes large metadata files with Kafka's own writers.
 *
 *   Gen snapshot FILE TOPICS PARTITIONS BROKERS uniform|mixed
 *   Gen log FILE TOPICS PARTITIONS BROKERS uniform|mixed CHANGES
 *
 * Mixed has the shapes of real clusters: replication factors 1 to 4, and one replicated partition in ten with a
 * shrunken ISR and an ELR. The same arguments give the same image.
 */
public class Gen {
    private static final int LOG_BATCH = 500;

    private final int topics;
    private final int partitions;
    private final int brokers;
    private final boolean mixed;

    private Gen(String[] args) {
        topics = Integer.parseInt(args[2]);
        partitions = Integer.parseInt(args[3]);
        brokers = Integer.parseInt(args[4]);
        mixed = args[5].equals("mixed");
    }

    /** Where records go, each call one topic or one kind at a time. */
    private interface Sink {
        void append(List<ApiMessageAndVersion> records) throws IOException;
    }

    /** An id that looks random and is not. */
    private static Uuid id(int kind, int number) {
        Random random = new Random(kind * 1_000_003L + number);
        return new Uuid(random.nextLong(), random.nextLong());
    }

    private static ApiMessageAndVersion record(ApiMessage message, int version) {
        return new ApiMessageAndVersion(message, (short) version);
    }

    private void write(Sink sink) throws IOException {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        short level = MetadataVersion.LATEST_PRODUCTION.featureLevel();
        records.add(record(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME).setFeatureLevel(level), 0));
        for (int broker = 0; broker < brokers; broker++) {
            records.add(record(broker(broker), 3));
        }
        sink.append(records);
        for (int topic = 0; topic < topics; topic++) {
            records.clear();
            records.add(record(new TopicRecord().setName("topic-" + topic).setTopicId(id(1, topic)), 0));
            for (int partition = 0; partition < partitions; partition++) {
                records.add(record(partition(topic, partition), 2));
            }
            if (topic % 4 == 0) {
                records.add(record(retention(topic), 0));
            }
            sink.append(records);
        }
    }

    private RegisterBrokerRecord broker(int number) {
        BrokerEndpoint endpoint = new BrokerEndpoint().setName("PLAINTEXT").setSecurityProtocol((short) 0)
            .setHost("broker-" + number + ".example").setPort(9092);
        RegisterBrokerRecord broker = new RegisterBrokerRecord().setBrokerId(number).setBrokerEpoch(10 + number)
            .setIncarnationId(id(2, number)).setRack("rack-" + number % 3).setFenced(false)
            .setLogDirs(List.of(id(3, number)));
        broker.endPoints().add(endpoint);
        return broker;
    }

    private ConfigRecord retention(int topic) {
        return new ConfigRecord().setResourceType(ConfigResource.Type.TOPIC.id()).setResourceName("topic-" + topic)
            .setName("retention.ms").setValue(Integer.toString(1000 * (topic + 1)));
    }

    private List<Integer> replicas(int topic, int partition) {
        int factor = 3;
        if (mixed && topic % 10 < 3) {
            factor = new int[] {1, 2, 4}[topic % 10];
        }
        List<Integer> replicas = new ArrayList<>();
        for (int i = 0; i < factor; i++) {
            replicas.add((topic + partition + i) % brokers);
        }
        return replicas;
    }

    private PartitionRecord partition(int topic, int partition) {
        List<Integer> replicas = replicas(topic, partition);
        List<Uuid> directories = new ArrayList<>();
        replicas.forEach(broker -> directories.add(id(3, broker)));
        PartitionRecord record = new PartitionRecord().setTopicId(id(1, topic)).setPartitionId(partition)
            .setReplicas(replicas).setIsr(replicas).setLeader(replicas.get(0)).setLeaderEpoch(partition % 7)
            .setPartitionEpoch(partition % 11).setDirectories(directories);
        int last = replicas.size() - 1;
        if (mixed && last > 0 && (topic * 31 + partition * 17) % 10 == 0) {
            record.setIsr(replicas.subList(0, last)).setEligibleLeaderReplicas(List.of(replicas.get(last)));
        }
        return record;
    }

    private PartitionChangeRecord change(Random random) {
        int topic = random.nextInt(topics);
        int partition = random.nextInt(partitions);
        List<Integer> replicas = replicas(topic, partition);
        int leader = replicas.get(random.nextInt(replicas.size()));
        List<Integer> isr = random.nextBoolean() ? replicas : List.of(leader);
        return new PartitionChangeRecord().setTopicId(id(1, topic)).setPartitionId(partition).setLeader(leader)
            .setIsr(isr);
    }

    /** Batches of a log, back to back, as a leader in epoch 1 appends them. */
    private static class LogFile implements Sink, AutoCloseable {
        private final OutputStream stream;
        private final WritableByteChannel channel;
        private long offset = 0;
        private long timestamp = 1_700_000_000_000L;

        LogFile(Path file) throws IOException {
            stream = new FileOutputStream(file.toFile());
            channel = Channels.newChannel(stream);
        }

        @Override
        public void append(List<ApiMessageAndVersion> records) throws IOException {
            for (int from = 0; from < records.size(); from += LOG_BATCH) {
                batch(records.subList(from, Math.min(records.size(), from + LOG_BATCH)));
            }
        }

        void batch(List<ApiMessageAndVersion> records) throws IOException {
            ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
            try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(buffer, RecordBatch.CURRENT_MAGIC_VALUE,
                Compression.NONE, TimestampType.CREATE_TIME, offset, timestamp, RecordBatch.NO_PRODUCER_ID,
                RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, false, 1, buffer.capacity())) {
                for (ApiMessageAndVersion record : records) {
                    builder.append(timestamp, null, encode(record));
                }
                channel.write(builder.build().buffer());
            }
            offset += records.size();
            timestamp += 250;
        }

        private static ByteBuffer encode(ApiMessageAndVersion record) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer value = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(value));
            value.flip();
            return value;
        }

        @Override
        public void close() throws IOException {
            stream.close();
        }
    }

    public static void main(String[] args) throws IOException {
        Gen gen = new Gen(args);
        Path file = Paths.get(args[1]);
        if (args[0].equals("snapshot")) {
            try (BatchFileWriter writer = BatchFileWriter.open(file)) {
                gen.write(records -> writer.append(List.copyOf(records)));
            }
            return;
        }
        Random random = new Random(42);
        try (LogFile log = new LogFile(file)) {
            gen.write(log);
            for (long left = Long.parseLong(args[6]); left > 0;) {
                List<ApiMessageAndVersion> batch = new ArrayList<>();
                for (int size = (int) Math.min(left, 1 + random.nextInt(40)); size > 0; size--, left--) {
                    batch.add(record(gen.change(random), 2));
                }
                log.batch(batch);
            }
        }
    }
}
