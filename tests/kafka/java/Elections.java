import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Changes partitions as the controller does. Lines on standard input, fields separated by tabs, lists by commas:
 * replicas, isr, elr, lastKnownElr, brokers that are acceptable as leaders, whether the ELR is on,
 * min.insync.replicas, PREFERRED, ONLINE or UNCLEAN, the leader (-1 for none), and the ISR that is to be. For each line
 * one: the leader then, "clean" or "unclean", and isr, elr and lastKnownElr then.
 */
public class Elections {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            int[] replicas = numbers(f[0]);
            Uuid[] directories = new Uuid[replicas.length];
            Arrays.fill(directories, new Uuid(7, 7));
            PartitionRegistration partition = new PartitionRegistration.Builder().setReplicas(replicas)
                .setDirectories(directories).setIsr(numbers(f[1])).setElr(numbers(f[2]))
                .setLastKnownElr(numbers(f[3])).setLeader(Integer.parseInt(f[8])).setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
                .setLeaderEpoch(1).setPartitionEpoch(1).build();
            Set<Integer> active = Arrays.stream(numbers(f[4])).boxed().collect(Collectors.toSet());
            Optional<ApiMessageAndVersion> built = new PartitionChangeBuilder(partition, new Uuid(1, 1), 0,
                active::contains, MetadataVersion.latestProduction(), Integer.parseInt(f[6]),
                Boolean.parseBoolean(f[5])).setElection(PartitionChangeBuilder.Election.valueOf(f[7]))
                .setTargetIsr(Arrays.stream(numbers(f[9])).boxed().collect(Collectors.toList()))
                .setDefaultDirProvider(broker -> new Uuid(7, 7)).build();
            PartitionRegistration after = built.map(b -> partition.merge((PartitionChangeRecord) b.message()))
                .orElse(partition);
            boolean unclean = after.leaderRecoveryState == LeaderRecoveryState.RECOVERING;
            out.append(after.leader).append('\t').append(unclean ? "unclean" : "clean").append('\t')
                .append(text(after.isr)).append('\t').append(text(after.elr)).append('\t')
                .append(text(after.lastKnownElr)).append('\n');
        }
        System.out.print(out);
    }

    private static String text(int[] numbers) {
        return Arrays.stream(numbers).mapToObj(Integer::toString).collect(Collectors.joining(","));
    }

    private static int[] numbers(String text) {
        return text.isEmpty() ? new int[0] : Arrays.stream(text.split(",")).mapToInt(Integer::parseInt).toArray();
    }
}
