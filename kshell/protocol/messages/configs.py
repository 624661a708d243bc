"""APIs that describe configurations and log levels, and change log levels (KIP-226, 339, 412, 569, 1142)."""

from kshell.protocol.api import api

DESCRIBE_CONFIGS = api(
    "DescribeConfigs",
    32,
    "1-4",
    flexible=4,
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
      configType     int8                             3+
      documentation  string?                          3+
""",
)

INCREMENTAL_ALTER_CONFIGS = api(
    "IncrementalAlterConfigs",
    44,
    "0-1",
    flexible=1,
    request="""
  resources            []AlterConfigsResource
    resourceType       int8
    resourceName       string
    configs            []AlterableConfig
      name             string
      configOperation  int8
      value            string?
  validateOnly         bool
""",
    response="""
  throttleTimeMs  int32
  responses       []AlterConfigsResourceResponse
    errorCode     int16
    errorMessage  string?
    resourceType  int8
    resourceName  string
""",
)

LIST_CONFIG_RESOURCES = api(
    "ListConfigResources",
    74,
    "0-1",
    flexible=0,
    request="""
  resourceTypes  []int8  1+
""",
    response="""
  throttleTimeMs   int32
  errorCode        int16
  configResources  []ConfigResource
    resourceName   string
    resourceType   int8              1+  = 16
""",
)
