"""APIs that describe nodes and the topics that brokers know (KIP-455, KIP-700, KIP-919, KIP-966, KIP-1073)."""

from kshell.protocol.api import api

METADATA = api(
    "Metadata",
    3,
    "1-13",
    flexible=9,
    most_elements=4_000_000,  # before DescribeTopicPartitions (3.8), one answer has all topics
    request="""
  topics                              []MetadataRequestTopic?
    topicId                           uuid                     10+
    name                              string?
  allowAutoTopicCreation              bool                     4+    = true
  includeClusterAuthorizedOperations  bool                     8-10
  includeTopicAuthorizedOperations    bool                     8+
""",
    response="""
  throttleTimeMs               int32                        3+
  brokers                      []MetadataResponseBroker
    nodeId                     int32
    host                       string
    port                       int32
    rack                       string?                            = null
  clusterId                    string?                      2+    = null
  controllerId                 int32                              = -1
  topics                       []MetadataResponseTopic
    errorCode                  int16
    name                       string?
    topicId                    uuid                         10+
    isInternal                 bool
    partitions                 []MetadataResponsePartition
      errorCode                int16
      partitionIndex           int32
      leaderId                 int32
      leaderEpoch              int32                        7+    = -1
      replicaNodes             []int32
      isrNodes                 []int32
      offlineReplicas          []int32                      5+
    topicAuthorizedOperations  int32                        8+    = -2147483648
  clusterAuthorizedOperations  int32                        8-10  = -2147483648
  errorCode                    int16                        13+
""",
)

DESCRIBE_CLUSTER = api(
    "DescribeCluster",
    60,
    "0-2",
    flexible=0,
    most_elements=50_000,
    request="""
  includeClusterAuthorizedOperations  bool
  endpointType                        int8  1+  = 1
  includeFencedBrokers                bool  2+
""",
    response="""
  throttleTimeMs               int32
  errorCode                    int16
  errorMessage                 string?                      = null
  endpointType                 int8                     1+  = 1
  clusterId                    string
  controllerId                 int32                        = -1
  brokers                      []DescribeClusterBroker
    brokerId                   int32
    host                       string
    port                       int32
    rack                       string?                      = null
    isFenced                   bool                     2+
  clusterAuthorizedOperations  int32                        = -2147483648
""",
)

DESCRIBE_TOPIC_PARTITIONS = api(
    "DescribeTopicPartitions",
    75,
    "0-0",
    flexible=0,
    most_elements=200_000,
    request="""
  topics                  []TopicRequest
    name                  string
  responsePartitionLimit  int32           = 2000
  cursor                  Cursor?         = null
    topicName             string
    partitionIndex        int32
""",
    response="""
  throttleTimeMs               int32
  topics                       []DescribeTopicPartitionsResponseTopic
    errorCode                  int16
    name                       string?
    topicId                    uuid
    isInternal                 bool
    partitions                 []DescribeTopicPartitionsResponsePartition
      errorCode                int16
      partitionIndex           int32
      leaderId                 int32
      leaderEpoch              int32                                       = -1
      replicaNodes             []int32
      isrNodes                 []int32
      eligibleLeaderReplicas   []int32?                                    = null
      lastKnownElr             []int32?                                    = null
      offlineReplicas          []int32
    topicAuthorizedOperations  int32                                       = -2147483648
  nextCursor                   Cursor?                                     = null
    topicName                  string
    partitionIndex             int32
""",
)

LIST_PARTITION_REASSIGNMENTS = api(
    "ListPartitionReassignments",
    46,
    "0-0",
    flexible=0,
    request="""
  timeoutMs           int32                                = 60000
  topics              []ListPartitionReassignmentsTopics?  = null
    name              string
    partitionIndexes  []int32
""",
    response="""
  throttleTimeMs        int32
  errorCode             int16
  errorMessage          string?
  topics                []OngoingTopicReassignment
    name                string
    partitions          []OngoingPartitionReassignment
      partitionIndex    int32
      replicas          []int32
      addingReplicas    []int32
      removingReplicas  []int32
""",
)
