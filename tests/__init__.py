"""The tests mirror the package; `kafka` is a real Kafka to test against, `live` are the tests that run one."""
