"""Messages as drafts of KIPs had them, where Kafka then did something else. Each is a dialect: off unless named.

Their numbers mean other layouts in Kafka's releases, so a dialect is for a peer that is known to speak it.
"""

from __future__ import annotations

from kshell.protocol.api import NEVER, Api, api
from kshell.protocol.decoder import UNKNOWN_TAGS, Message

_KIP_35 = api(
    "ApiVersions",
    18,
    "0",
    flexible=NEVER,
    request="""
  apiKeys       []int16?  = null
""",
    response="""
  apiKeys       []ApiVersion
    apiKey      int16
    minVersion  int16
    maxVersion  int16
""",
)

_KIP_885 = api(
    "DescribeCluster",
    60,
    "0-1",
    flexible=0,
    request="""
  includeClusterAuthorizedOperations  bool
""",
    response="""
  throttleTimeMs               int32
  errorCode                    int16
  errorMessage                 string?                    = null
  clusterId                    string
  controllerId                 int32                      = -1
  brokers                      []DescribeClusterBroker
    brokerId                   int32
    host                       string
    port                       int32
    rack                       string?                    = null
  brokerSoftwareName           string?                1+  = null
  brokerSoftwareVersion        string?                1+  = null
  clusterAuthorizedOperations  int32                      = -2147483648
""",
)

_KIP_885_API_VERSIONS = api(
    "ApiVersions",
    18,
    "0-4",
    flexible=3,
    request="""
  clientSoftwareName     string  3+
  clientSoftwareVersion  string  3+
""",
    response="""
  errorCode               int16
  apiKeys                 []ApiVersion
    apiKey                int16
    minVersion            int16
    maxVersion            int16
  throttleTimeMs          int32                  1+
  brokerSoftwareName      string?                4+         = null
  brokerSoftwareVersion   string?                4+         = null
  supportedFeatures       []SupportedFeatureKey  3+  tag 0
    name                  string
    minVersion            int16
    maxVersion            int16
  finalizedFeaturesEpoch  int64                  3+  tag 1  = -1
  finalizedFeatures       []FinalizedFeatureKey  3+  tag 2
    name                  string
    maxVersionLevel       int16
    minVersionLevel       int16
""",
)

_KIP_919 = api(
    "Metadata",
    3,
    "1-13",
    flexible=9,
    request="""
  topics                              []MetadataRequestTopic?
    topicId                           uuid                     10+
    name                              string?
  allowAutoTopicCreation              bool                     4+    = true
  includeClusterAuthorizedOperations  bool                     8-10
  includeTopicAuthorizedOperations    bool                     8+
  directToKRaftControllerQuorum       bool                     13+
""",
    response="""
  throttleTimeMs               int32                        3+
  brokers                      []MetadataResponseBroker
    nodeId                     int32
    host                       string
    port                       int32
    rack                       string?                             = null
  clusterId                    string?                      2+     = null
  controllerId                 int32                               = -1
  topics                       []MetadataResponseTopic
    errorCode                  int16
    name                       string?
    topicId                    uuid                         10+
    isInternal                 bool
    partitions                 []MetadataResponsePartition
      errorCode                int16
      partitionIndex           int32
      leaderId                 int32
      leaderEpoch              int32                        7+     = -1
      replicaNodes             []int32
      isrNodes                 []int32
      offlineReplicas          []int32                      5+
    topicAuthorizedOperations  int32                        8+     = -2147483648
  clusterAuthorizedOperations  int32                        8-10   = -2147483648
  fromKRaftController          bool                         13+    tag 0
""",
)

_KIP_569 = api(
    "DescribeConfigs",
    32,
    "1-3",
    flexible=NEVER,
    request="""
  resources             []DescribeConfigsResource
    resourceType        int8
    resourceName        string
    configurationKeys   []string?
  includeSynonyms       bool
  includeDocumentation  bool                       3+
""",
    response="""
  throttleTimeMs     int32
  results            []DescribeConfigsResult
    errorCode        int16
    errorMessage     string?
    resourceType     int8
    resourceName     string
    configs          []DescribeConfigsResourceResult
      name           string
      value          string?
      readOnly       bool
      configSource   int8                                 = -1
      isSensitive    bool
      synonyms       []DescribeConfigsSynonym
        name         string
        value        string?
        source       int8
      type           string?                          3+  = null
      validator      Validator?                       3+  = null
        caseSensitive  bool
        values       []string
      documentation  string?                          3+  = null
""",
)

DIALECTS: dict[str, Api] = {
    "kip-35-draft": _KIP_35,
    "kip-569-draft": _KIP_569,
    "kip-885": _KIP_885,
    "kip-885-apiversions": _KIP_885_API_VERSIONS,
    "kip-919-draft": _KIP_919,
}
"""Name of a dialect -> the one API whose layout it replaces."""

_TYPES = frozenset("BOOLEAN STRING INT SHORT LONG DOUBLE LIST CLASS PASSWORD UNKNOWN".split())
_SHORTEST_ID = 2
_DRAFTED_AT = 3


def doubt(api: Api, version: int, body: Message) -> str | None:
    """Why a decoded answer cannot be that dialect's, though its bytes can be read so; ``None`` where it can.

    What Kafka itself answers differs from a draft by a field or two, and now and then has bytes that fit both. Then a
    field holds what stands elsewhere in Kafka's layout, and never what belongs there.
    """
    if api is _KIP_885 and version >= 1 and not body["errorCode"] and len(body["clusterId"]) < _SHORTEST_ID:
        return "the cluster's id is missing"  # Kafka's endpoint type, read as the length of the id
    if api is _KIP_885_API_VERSIONS and (body.get("brokerSoftwareName") or " ") < " ":
        return "the software's name begins with a control character"  # the number of a tagged field
    if api is _KIP_919 and version == _KIP_919.versions.high and UNKNOWN_TAGS in body:
        return "a tagged field is none of the draft's"  # an error code, read as tagged fields
    if api is _KIP_569 and version == _DRAFTED_AT:
        for config in (config for result in body["results"] for config in result["configs"]):
            if config["type"] is not None and config["type"] not in _TYPES:
                return "a configuration's type is none"  # a number, and the length of the documentation
    return None
