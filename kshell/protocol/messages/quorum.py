"""APIs that an observer of the metadata log uses (KIP-595, KIP-630, KIP-836, KIP-853, KIP-1166)."""

from kshell.protocol.api import api

FETCH = api(
    "Fetch",
    1,
    "13-18",
    flexible=12,
    most_elements=50_000,
    request="""
  clusterId               string?                  tag 0  = null
  replicaId               int32             13-14         = -1
  replicaState            ReplicaState      15+    tag 1
    replicaId             int32             15+           = -1
    replicaEpoch          int64             15+           = -1
  maxWaitMs               int32
  minBytes                int32
  maxBytes                int32                           = 2147483647
  isolationLevel          int8
  sessionId               int32
  sessionEpoch            int32                           = -1
  topics                  []FetchTopic
    topicId               uuid
    partitions            []FetchPartition
      partition           int32
      currentLeaderEpoch  int32                           = -1
      fetchOffset         int64
      lastFetchedEpoch    int32                           = -1
      logStartOffset      int64                           = -1
      partitionMaxBytes   int32
      replicaDirectoryId  uuid              17+    tag 0
      highWatermark       int64             18+    tag 1  = 9223372036854775807
  forgottenTopicsData     []ForgottenTopic
    topicId               uuid
    partitions            []int32
  rackId                  string
""",
    response="""
  throttleTimeMs            int32
  errorCode                 int16
  sessionId                 int32
  responses                 []FetchableTopicResponse
    topicId                 uuid
    partitions              []PartitionData
      partitionIndex        int32
      errorCode             int16
      highWatermark         int64
      lastStableOffset      int64                                 = -1
      logStartOffset        int64                                 = -1
      divergingEpoch        EpochEndOffset                 tag 0
        epoch               int32                                 = -1
        endOffset           int64                                 = -1
      currentLeader         LeaderIdAndEpoch               tag 1
        leaderId            int32                                 = -1
        leaderEpoch         int32                                 = -1
      snapshotId            SnapshotId                     tag 2
        endOffset           int64                                 = -1
        epoch               int32                                 = -1
      abortedTransactions   []AbortedTransaction?
        producerId          int64
        firstOffset         int64
      preferredReadReplica  int32                                 = -1
      records               bytes?
  nodeEndpoints             []NodeEndpoint            16+  tag 0
    nodeId                  int32                     16+
    host                    string                    16+
    port                    int32                     16+
    rack                    string?                   16+         = null
""",
)

FETCH_SNAPSHOT = api(
    "FetchSnapshot",
    59,
    "0-1",
    flexible=0,
    most_elements=50_000,
    request="""
  clusterId               string?                  tag 0  = null
  replicaId               int32                           = -1
  maxBytes                int32                           = 2147483647
  topics                  []TopicSnapshot
    name                  string
    partitions            []PartitionSnapshot
      partition           int32
      currentLeaderEpoch  int32
      snapshotId          SnapshotId
        endOffset         int64
        epoch             int32
      position            int64
      replicaDirectoryId  uuid                 1+  tag 0
""",
    response="""
  throttleTimeMs        int32
  errorCode             int16
  topics                []TopicSnapshot
    name                string
    partitions          []PartitionSnapshot
      index             int32
      errorCode         int16
      snapshotId        SnapshotId
        endOffset       int64
        epoch           int32
      currentLeader     LeaderIdAndEpoch         tag 0
        leaderId        int32
        leaderEpoch     int32
      size              int64
      position          int64
      unalignedRecords  bytes
  nodeEndpoints         []NodeEndpoint       1+  tag 0
    nodeId              int32                1+
    host                string               1+
    port                uint16               1+
""",
)

DESCRIBE_QUORUM = api(
    "DescribeQuorum",
    55,
    "0-2",
    flexible=0,
    most_elements=50_000,
    request="""
  topics              []TopicData
    topicName         string
    partitions        []PartitionData
      partitionIndex  int32
""",
    response="""
  errorCode                    int16
  errorMessage                 string?          2+
  topics                       []TopicData
    topicName                  string
    partitions                 []PartitionData
      partitionIndex           int32
      errorCode                int16
      errorMessage             string?          2+
      leaderId                 int32
      leaderEpoch              int32
      highWatermark            int64
      currentVoters            []ReplicaState
        replicaId              int32
        replicaDirectoryId     uuid             2+
        logEndOffset           int64
        lastFetchTimestamp     int64            1+  = -1
        lastCaughtUpTimestamp  int64            1+  = -1
      observers                []ReplicaState
        replicaId              int32
        replicaDirectoryId     uuid             2+
        logEndOffset           int64
        lastFetchTimestamp     int64            1+  = -1
        lastCaughtUpTimestamp  int64            1+  = -1
  nodes                        []Node           2+
    nodeId                     int32            2+
    listeners                  []Listener       2+
      name                     string           2+
      host                     string           2+
      port                     uint16           2+
""",
)
