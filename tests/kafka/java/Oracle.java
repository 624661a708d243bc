import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.metadata.AbortTransactionRecord;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.node.MetadataImageNode;
import org.apache.kafka.image.node.MetadataNode;
import org.apache.kafka.image.node.printer.MetadataNodePrinter;
import org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria;
import org.apache.kafka.metadata.MetadataRecordSerde;

/**
 * What Kafka's own classes see in a metadata directory: every leaf of the image, as path TAB text.
 *
 *   Oracle DIR            the newest snapshot, then the log after it
 *   Oracle DIR at N       the same as of offset N (in the middle of a batch too)
 *   Oracle DIR log [N]    the log alone, from offset 0
 *   Oracle DIR each S OUT one pass over the log alone; OUT/<offset>.tsv for every S-th offset
 *
 * An open metadata transaction is left out. The last line is "#lastOffset": the offset of the last metadata record in
 * the image.
 */
public class Oracle {
    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    private List<ApiMessage> transaction = null;
    private long lastOffset = -1;

    /** One record of the log; what an open transaction holds is not in the image. */
    private void replay(Record record) {
        replay(decode(record));
        if (transaction == null) {
            lastOffset = record.offset();
        }
    }

    /** One metadata record into the delta, or aside while a transaction is open. */
    private void replay(ApiMessage message) {
        if (message instanceof BeginTransactionRecord) {
            transaction = new ArrayList<>();
        } else if (message instanceof EndTransactionRecord) {
            transaction.forEach(delta::replay);
            transaction = null;
        } else if (message instanceof AbortTransactionRecord) {
            transaction = null;
        } else if (transaction != null) {
            transaction.add(message);
        } else {
            delta.replay(message);
        }
    }

    /** The delta into the image. */
    private void apply() {
        image = delta.apply(new MetadataProvenance(lastOffset, 0, 0, true));
        delta = new MetadataDelta.Builder().setImage(image).build();
    }

    /** The batches of a file that may be growing: FileRecords itself trims it when closed, before 4.4. */
    private static class Batches implements Iterable<FileChannelRecordBatch>, AutoCloseable {
        private final FileRecords records;

        Batches(Path file) throws IOException {
            records = FileRecords.open(file.toFile(), false);
        }

        @Override
        public Iterator<FileChannelRecordBatch> iterator() {
            return records.batches().iterator();
        }

        @Override
        public void close() throws IOException {
            records.channel().close();
        }
    }

    private static ApiMessage decode(Record record) {
        ByteBufferAccessor value = new ByteBufferAccessor(record.value());
        return MetadataRecordSerde.INSTANCE.read(value, record.valueSize()).message();
    }

    private void loadSnapshot(Path file, long end) throws IOException {
        try (Batches records = new Batches(file)) {
            for (RecordBatch batch : records) {
                batch.ensureValid();
                if (!batch.isControlBatch()) {
                    batch.forEach(record -> replay(decode(record)));
                }
            }
        }
        delta.finishSnapshot();
        lastOffset = end - 1;
        apply();
    }

    /** The records of a segment from one offset to another, both inclusive; the image follows batch by batch. */
    private void loadSegment(Path file, long from, long to) throws IOException {
        try (Batches records = new Batches(file)) {
            for (RecordBatch batch : records) {
                batch.ensureValid();
                if (batch.isControlBatch()) {
                    continue;
                }
                for (Record record : batch) {
                    if (record.offset() >= from && record.offset() <= to) {
                        replay(record);
                    }
                }
                if (transaction == null) {
                    apply();
                }
            }
        }
    }

    private void loadEach(Path file, long step, Path out) throws IOException {
        try (Batches records = new Batches(file)) {
            for (RecordBatch batch : records) {
                batch.ensureValid();
                for (Record record : batch) {
                    if (!batch.isControlBatch()) {
                        replay(record);
                        apply();
                    }
                    if (record.offset() % step == 0) {
                        Files.write(out.resolve(record.offset() + ".tsv"), text().getBytes(StandardCharsets.UTF_8));
                    }
                }
            }
        }
    }

    private String text() {
        TreeMap<String, String> leaves = new TreeMap<>();
        walk("/image", new MetadataImageNode(image), leaves);
        leaves.remove("/image/provenance");
        StringBuilder out = new StringBuilder();
        leaves.forEach((path, value) ->
            out.append(path).append('\t').append(value.replace("\\", "\\\\").replace("\n", "\\n")).append('\n'));
        return out.append("#lastOffset\t").append(lastOffset).append('\n').toString();
    }

    private static void walk(String path, MetadataNode node, Map<String, String> out) {
        if (node == null) {
            return;
        }
        if (!node.isDirectory()) {
            Text text = new Text();
            node.print(text);
            out.put(path, text.out.toString());
            return;
        }
        if (node.childNames().isEmpty()) {
            out.put(path + "/", "");
        }
        node.childNames().forEach(name -> walk(path + "/" + name, node.child(name), out));
    }

    /** Collects what a leaf prints, secrets included. */
    private static class Text implements MetadataNodePrinter {
        private final StringBuilder out = new StringBuilder();

        @Override
        public MetadataNodeRedactionCriteria redactionCriteria() {
            return MetadataNodeRedactionCriteria.Disabled.INSTANCE;
        }

        @Override
        public void enterNode(String name) {
            out.append('<').append(name).append('>');
        }

        @Override
        public void leaveNode() {
        }

        @Override
        public void output(String text) {
            out.append(text);
        }

        @Override
        public void close() {
        }
    }

    private static TreeMap<Long, Path> files(Path dir, String glob) throws IOException {
        TreeMap<Long, Path> found = new TreeMap<>();
        try (DirectoryStream<Path> list = Files.newDirectoryStream(dir, glob)) {
            for (Path path : list) {
                String name = path.getFileName().toString();
                // What kafka-storage wrote there comes with the log: no image is loaded from it (handleLoadBootstrap).
                if (!name.equals("00000000000000000000-0000000000.checkpoint")) {
                    found.put(Long.parseLong(name.substring(0, 20)), path);
                }
            }
        }
        return found;
    }

    private static void print(String text) {
        PrintWriter out = new PrintWriter(System.out, false, StandardCharsets.UTF_8);
        out.print(text);
        out.flush();
    }

    public static void main(String[] args) throws IOException {
        Path dir = Paths.get(args[0]);
        String mode = args.length > 1 ? args[1] : "all";
        TreeMap<Long, Path> segments = files(dir, "*.log");
        Oracle oracle = new Oracle();
        if (mode.equals("each")) {
            Path out = Files.createDirectories(Paths.get(args[3]));
            for (Path segment : segments.values()) {
                oracle.loadEach(segment, Long.parseLong(args[2]), out);
            }
            return;
        }
        long to = args.length > 2 ? Long.parseLong(args[2]) : Long.MAX_VALUE - 1;
        long from = 0;
        Map.Entry<Long, Path> snapshot = files(dir, "*-*.checkpoint").floorEntry(to + 1);
        if (snapshot != null && !mode.equals("log")) {
            from = snapshot.getKey();
            oracle.loadSnapshot(snapshot.getValue(), from);
        }
        for (Path segment : segments.values()) {
            oracle.loadSegment(segment, from, to);
        }
        if (oracle.transaction != null) {
            oracle.apply();
        }
        print(oracle.text());
    }
}
