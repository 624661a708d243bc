import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Administers a cluster in one long-lived process: Admin PROPERTIES.
 *
 * Reads one JSON object a line, {"verb": ..., ...}, and answers each with one line: {"ok": ...} or {"error": ...}.
 * Only API that all releases from 3.3 on have, so that one source serves them all.
 */
public class Admin {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Properties properties;
    private final org.apache.kafka.clients.admin.Admin client;

    private Admin(Properties properties) {
        this.properties = properties;
        this.client = org.apache.kafka.clients.admin.Admin.create(properties);
    }

    private Object answer(JsonNode r) throws Exception {
        switch (r.get("verb").asText()) {
            case "createTopic":
                return createTopic(r);
            case "deleteTopic":
                return client.deleteTopics(List.of(text(r, "name"))).all().get();
            case "addPartitions":
                NewPartitions total = NewPartitions.increaseTo(r.get("total").asInt());
                return client.createPartitions(Map.of(text(r, "name"), total)).all().get();
            case "describeTopic":
                return describeTopic(text(r, "name"));
            case "configs":
                return configs(r);
            case "acl":
                return acl(r);
            case "quota":
                return quota(r);
            case "scram":
                return scram(r);
            case "feature":
                return feature(r);
            case "reassign":
                return reassign(r);
            case "elect":
                return client.electLeaders(ElectionType.valueOf(text(r, "type")), Set.of(partition(r))).all().get();
            case "token":
                return token(r);
            case "unregisterBroker":
                return client.unregisterBroker(r.get("id").asInt()).all().get();
            case "brokers":
                return brokers();
            case "highWatermark":
                return client.describeMetadataQuorum().quorumInfo().get().highWatermark();
            case "produce":
                return produce(r);
            default:
                throw new IllegalArgumentException("unknown verb " + r);
        }
    }

    private Object createTopic(JsonNode r) throws Exception {
        NewTopic topic;
        if (r.hasNonNull("assignment")) {
            Map<Integer, List<Integer>> replicas = new TreeMap<>();
            for (JsonNode one : r.get("assignment")) {
                replicas.put(replicas.size(), integers(one));
            }
            topic = new NewTopic(text(r, "name"), replicas);
        } else {
            topic = new NewTopic(text(r, "name"), r.get("partitions").asInt(), (short) r.get("replicas").asInt());
        }
        Map<String, String> configs = new LinkedHashMap<>();
        r.get("configs").fields().forEachRemaining(e -> configs.put(e.getKey(), e.getValue().asText()));
        return client.createTopics(List.of(topic.configs(configs))).all().get();
    }

    private Object describeTopic(String name) throws Exception {
        TopicDescription topic = client.describeTopics(List.of(name)).allTopicNames().get().get(name);
        List<Map<String, Object>> partitions = new ArrayList<>();
        for (TopicPartitionInfo p : topic.partitions()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("leader", p.leader() == null ? -1 : p.leader().id());
            one.put("replicas", ids(p.replicas()));
            one.put("isr", ids(p.isr()));
            partitions.add(one);
        }
        return partitions;
    }

    private Object configs(JsonNode r) throws Exception {
        ConfigResource.Type type = ConfigResource.Type.valueOf(text(r, "type"));
        Map<ConfigResource, Collection<AlterConfigOp>> changes = new LinkedHashMap<>();
        r.get("values").fields().forEachRemaining(e ->
            changes.put(new ConfigResource(type, e.getKey()), ops(e.getValue())));
        return client.incrementalAlterConfigs(changes).all().get();
    }

    private static Collection<AlterConfigOp> ops(JsonNode values) {
        List<AlterConfigOp> ops = new ArrayList<>();
        values.fields().forEachRemaining(e -> ops.add(e.getValue().isNull()
            ? new AlterConfigOp(new ConfigEntry(e.getKey(), ""), AlterConfigOp.OpType.DELETE)
            : new AlterConfigOp(new ConfigEntry(e.getKey(), e.getValue().asText()), AlterConfigOp.OpType.SET)));
        return ops;
    }

    private Object acl(JsonNode r) throws Exception {
        ResourcePattern pattern = new ResourcePattern(ResourceType.valueOf(text(r, "resourceType")),
            text(r, "resourceName"), PatternType.valueOf(text(r, "patternType")));
        AccessControlEntry entry = new AccessControlEntry(text(r, "principal"), text(r, "host"),
            AclOperation.valueOf(text(r, "operation")), AclPermissionType.valueOf(text(r, "permissionType")));
        AclBinding binding = new AclBinding(pattern, entry);
        if (r.get("remove").asBoolean()) {
            return client.deleteAcls(List.of(binding.toFilter())).all().get().size();
        }
        return client.createAcls(List.of(binding)).all().get();
    }

    private Object quota(JsonNode r) throws Exception {
        Map<String, String> entity = new HashMap<>();
        r.get("entity").fields().forEachRemaining(e ->
            entity.put(e.getKey(), e.getValue().isNull() ? null : e.getValue().asText()));
        Double value = r.get("value").isNull() ? null : r.get("value").asDouble();
        ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op(text(r, "key"), value);
        return client.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity), List.of(op))))
            .all().get();
    }

    private Object scram(JsonNode r) throws Exception {
        ScramMechanism mechanism = ScramMechanism.fromMechanismName(text(r, "mechanism"));
        if (r.get("password").isNull()) {
            return client.alterUserScramCredentials(
                List.of(new UserScramCredentialDeletion(text(r, "user"), mechanism))).all().get();
        }
        return client.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(text(r, "user"),
            new ScramCredentialInfo(mechanism, r.get("iterations").asInt()), text(r, "password")))).all().get();
    }

    private Object feature(JsonNode r) throws Exception {
        FeatureUpdate.UpgradeType type = FeatureUpdate.UpgradeType.valueOf(text(r, "type"));
        FeatureUpdate update = new FeatureUpdate((short) r.get("level").asInt(), type);
        return client.updateFeatures(Map.of(text(r, "name"), update), new UpdateFeaturesOptions()).all().get();
    }

    private Object reassign(JsonNode r) throws Exception {
        Optional<NewPartitionReassignment> to = r.get("replicas").isNull()
            ? Optional.empty() : Optional.of(new NewPartitionReassignment(integers(r.get("replicas"))));
        return client.alterPartitionReassignments(Map.of(partition(r), to)).all().get();
    }

    private Object token(JsonNode r) throws Exception {
        if (r.hasNonNull("hmac")) {
            byte[] hmac = Base64.getDecoder().decode(text(r, "hmac"));
            long period = r.get("period").asLong();
            return text(r, "action").equals("renew")
                ? client.renewDelegationToken(hmac, new RenewDelegationTokenOptions().renewTimePeriodMs(period))
                    .expiryTimestamp().get()
                : client.expireDelegationToken(hmac, new ExpireDelegationTokenOptions().expiryTimePeriodMs(period))
                    .expiryTimestamp().get();
        }
        List<KafkaPrincipal> renewers = new ArrayList<>();
        r.get("renewers").forEach(name -> renewers.add(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, name.asText())));
        CreateDelegationTokenOptions options = new CreateDelegationTokenOptions().renewers(renewers);
        if (r.hasNonNull("owner")) {
            options.owner(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, text(r, "owner")));
        }
        DelegationToken token = client.createDelegationToken(options).delegationToken().get();
        return Map.of("tokenId", token.tokenInfo().tokenId(), "hmac", token.hmacAsBase64String());
    }

    private Object brokers() throws Exception {
        return ids(new ArrayList<>(client.describeCluster().nodes().get()));
    }

    private Object produce(JsonNode r) throws Exception {
        Properties p = new Properties();
        p.putAll(properties);
        p.put("enable.idempotence", "true");
        if (r.hasNonNull("transactionalId")) {
            p.put("transactional.id", text(r, "transactionalId"));
        }
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (r.hasNonNull("transactionalId")) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (int i = 0; i < r.get("count").asInt(); i++) {
                producer.send(new ProducerRecord<>(text(r, "topic"), ("event " + i).getBytes())).get();
            }
            if (r.hasNonNull("transactionalId")) {
                producer.commitTransaction();
            }
        }
        return null;
    }

    private static TopicPartition partition(JsonNode r) {
        return new TopicPartition(text(r, "topic"), r.get("partition").asInt());
    }

    private static String text(JsonNode r, String name) {
        return r.get(name).asText();
    }

    private static List<Integer> integers(JsonNode list) {
        List<Integer> out = new ArrayList<>();
        list.forEach(one -> out.add(one.asInt()));
        return out;
    }

    private static List<Integer> ids(List<Node> nodes) {
        List<Integer> out = new ArrayList<>();
        nodes.forEach(node -> out.add(node.id()));
        return out;
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream in = new FileInputStream(args[0])) {
            properties.load(in);
        }
        Admin admin = new Admin(properties);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode reply = JSON.createObjectNode();
            try {
                reply.set("ok", JSON.valueToTree(admin.answer(JSON.readTree(line))));
            } catch (ExecutionException failed) {
                reply.put("error", String.valueOf(failed.getCause()));
            } catch (Exception failed) {
                reply.put("error", String.valueOf(failed));
            }
            System.out.write((JSON.writeValueAsString(reply) + "\n").getBytes(StandardCharsets.UTF_8));
            System.out.flush();
        }
    }
}
