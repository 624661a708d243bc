"""APIs of a connection's beginning: ApiVersions (KIP-35, KIP-511, KIP-584) and SASL (KIP-43, KIP-152, KIP-368)."""

from kshell.protocol.api import NEVER, api

API_VERSIONS = api(
    "ApiVersions",
    18,
    "0-5",
    flexible=3,
    most_elements=50_000,
    request="""
  clientSoftwareName     string  3+
  clientSoftwareVersion  string  3+
  clusterId              string? 5+ = null
  nodeId                 int32   5+ = -1
""",
    response="""
  errorCode               int16
  apiKeys                 []ApiVersion
    apiKey                int16
    minVersion            int16
    maxVersion            int16
  throttleTimeMs          int32                  1+
  supportedFeatures       []SupportedFeatureKey  3+  tag 0
    name                  string                 3+
    minVersion            int16                  3+
    maxVersion            int16                  3+
  finalizedFeaturesEpoch  int64                  3+  tag 1  = -1
  finalizedFeatures       []FinalizedFeatureKey  3+  tag 2
    name                  string                 3+
    maxVersionLevel       int16                  3+
    minVersionLevel       int16                  3+
  zkMigrationReady        bool                   3+  tag 3
""",
)

SASL_HANDSHAKE = api(
    "SaslHandshake",
    17,
    "0-1",
    flexible=NEVER,
    most_elements=50_000,
    request="""
  mechanism  string
""",
    response="""
  errorCode   int16
  mechanisms  []string
""",
)

SASL_AUTHENTICATE = api(
    "SaslAuthenticate",
    36,
    "0-2",
    flexible=2,
    most_elements=50_000,
    request="""
  authBytes  bytes
""",
    response="""
  errorCode          int16
  errorMessage       string?
  authBytes          bytes
  sessionLifetimeMs  int64    1+
""",
)
