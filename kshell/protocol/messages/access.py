"""APIs that describe ACLs, quotas, SCRAM users and delegation tokens (KIP-140, KIP-290, KIP-546, KIP-554, KIP-48)."""

from kshell.protocol.api import api

DESCRIBE_ACLS = api(
    "DescribeAcls",
    29,
    "1-3",
    flexible=2,
    request="""
  resourceTypeFilter  int8
  resourceNameFilter  string?
  patternTypeFilter   int8     = 3
  principalFilter     string?
  hostFilter          string?
  operation           int8
  permissionType      int8
""",
    response="""
  throttleTimeMs      int32
  errorCode           int16
  errorMessage        string?
  resources           []DescribeAclsResource
    resourceType      int8
    resourceName      string
    patternType       int8                    = 3
    acls              []AclDescription
      principal       string
      host            string
      operation       int8
      permissionType  int8
""",
)

DESCRIBE_CLIENT_QUOTAS = api(
    "DescribeClientQuotas",
    48,
    "0-1",
    flexible=1,
    request="""
  components    []ComponentData
    entityType  string
    matchType   int8
    match       string?
  strict        bool
""",
    response="""
  throttleTimeMs  int32
  errorCode       int16
  errorMessage    string?
  entries         []EntryData?
    entity        []EntityData
      entityType  string
      entityName  string?
    values        []ValueData
      key         string
      value       float64
""",
)

DESCRIBE_USER_SCRAM_CREDENTIALS = api(
    "DescribeUserScramCredentials",
    50,
    "0-0",
    flexible=0,
    request="""
  users   []UserName?
    name  string
""",
    response="""
  throttleTimeMs     int32
  errorCode          int16
  errorMessage       string?
  results            []DescribeUserScramCredentialsResult
    user             string
    errorCode        int16
    errorMessage     string?
    credentialInfos  []CredentialInfo
      mechanism      int8
      iterations     int32
""",
)

DESCRIBE_DELEGATION_TOKEN = api(
    "DescribeDelegationToken",
    41,
    "1-3",
    flexible=2,
    request="""
  owners           []DescribeDelegationTokenOwner?
    principalType  string
    principalName  string
""",
    response="""
  errorCode                      int16
  tokens                         []DescribedDelegationToken
    principalType                string
    principalName                string
    tokenRequesterPrincipalType  string                             3+
    tokenRequesterPrincipalName  string                             3+
    issueTimestamp               int64
    expiryTimestamp              int64
    maxTimestamp                 int64
    tokenId                      string
    hmac                         bytes
    renewers                     []DescribedDelegationTokenRenewer
      principalType              string
      principalName              string
  throttleTimeMs                 int32
""",
)
