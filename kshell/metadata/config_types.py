"""Types, valid values and defaults of the config keys that Kafka defines, by resource type.

Generated; do not edit. Regenerate: ``python -m tests.tools.config_types`` (Java and Maven needed). The facts are read
out of Kafka's own classes: the schema that a controller uses, and the classes that validate dynamic broker, group and
client metrics configs; of the releases
3.3.2, 3.4.1, 3.5.2, 3.6.2, 3.7.2, 3.8.1, 3.9.2, 4.0.0, 4.1.1, 4.2.1, 4.3.1, 4.4.0.

``TABLE[resource type]`` is text: one word a key, ``key:TYPE:rules:default``. Type and default are the newest release's,
but a key that is a PASSWORD in any release is one here: its values are secrets. Rules are separated by ``|``, that of
the newest release first: ``1..5`` (either end may be open), ``in:a,b`` (one of those), ``IN:a,b`` (in any case),
``list:a,b`` (a list of those), ``*`` or no rule at all (anything). The default is URL-encoded, ``-`` for none.

Broker keys may be stored with a prefix: ``listener.name.<listener>.<key>`` (security settings such as ``ssl.*`` and
``sasl.*``, ``principal.builder.class``, ``max.connections``, ``max.connection.creation.rate``), and those of
``PER_MECHANISM``, which are set for one SASL mechanism of one listener, as
``listener.name.<listener>.<mechanism>.<key>``. Kafka takes what follows the listener's name, which holds no dot, and
then the ``PER_MECHANISM`` key that it ends with, if any. Only ``BROKER`` keys have prefixes.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

NEWEST = "4.4"
LISTENER_PREFIX = "listener.name."
PER_MECHANISM = frozenset(
    """
    connections.max.reauth.ms sasl.jaas.config sasl.login.callback.handler.class sasl.login.class
    sasl.server.callback.handler.class
    """.split()
)


class KnownType(NamedTuple):
    """A key as Kafka defines it. ``rules``: what each release line takes, the newest's first; empty for anything."""

    type: str
    rules: tuple[str, ...]
    encoded_default: str

    @property
    def is_password(self) -> bool:
        """Whether the key's values are secrets."""
        return self.type == "PASSWORD"

    @property
    def default(self) -> str | None:
        """The value that Kafka uses if the key is not set; None if there is none."""
        from urllib.parse import unquote  # late: whether a value is secret does not depend on it

        return None if self.encoded_default == "-" else unquote(self.encoded_default)


@cache
def known_types(resource_type: str) -> dict[str, KnownType]:
    """Every key of a resource type (``TOPIC``, ``BROKER``, ``GROUP``, ``CLIENT_METRICS``); empty for others."""
    types = {}
    for definition in TABLE.get(resource_type, "").split():
        key, kind, rest = definition.split(":", 2)
        rules, _, default = rest.rpartition(":")  # only rules hold more colons
        types[key] = KnownType(kind, tuple(rules.split("|")) if rules else (), default)
    return types


def known_key(resource_type: str, key: str) -> KnownType | None:
    """Return what Kafka declares of a key, which may have a prefix; None if no release knows the key."""
    types_by_key = known_types(resource_type)
    if resource_type == "BROKER" and key.startswith(LISTENER_PREFIX):
        rest = key.removeprefix(LISTENER_PREFIX).partition(".")[2]
        key = next((mechanism_key for mechanism_key in PER_MECHANISM if rest.endswith(f".{mechanism_key}")), rest)
    return types_by_key.get(key)


TABLE: dict[str, str] = {
    "BROKER": """
      add.partitions.to.txn.retry.backoff.max.ms:INT:0..:100 add.partitions.to.txn.retry.backoff.ms:INT:1..:20
      advertised.listeners:LIST::- alter.config.policy.class.name:CLASS::-
      alter.config.policy.kraft.compatibility.enable:BOOLEAN::false
      alter.log.dirs.replication.quota.window.num:INT:1..:11
      alter.log.dirs.replication.quota.window.size.seconds:INT:1..:1 authorizer.class.name:STRING::
      auto.create.topics.enable:BOOLEAN::true auto.include.jmx.reporter:BOOLEAN::true
      auto.leader.rebalance.enable:BOOLEAN::true background.threads:INT:1..:10 broker.heartbeat.interval.ms:INT::2000
      broker.id:INT::-1 broker.id.generation.enable:BOOLEAN::true broker.rack:STRING::-
      broker.session.timeout.ms:INT::9000 client.quota.callback.class:CLASS::- compression.gzip.level:INT::-1
      compression.lz4.level:INT:1..17:9 compression.type:STRING:in:gzip,lz4,producer,snappy,uncompressed,zstd:producer
      compression.zstd.level:INT:-131072..22:3 config.providers:LIST::
      connection.failed.authentication.delay.ms:INT:0..:100 connections.max.idle.ms:LONG::600000
      connections.max.reauth.ms:LONG::0 control.plane.listener.name:STRING::- controlled.shutdown.enable:BOOLEAN::true
      controlled.shutdown.max.retries:INT::3 controlled.shutdown.retry.backoff.ms:LONG::5000
      controller.listener.names:LIST::- controller.performance.always.log.threshold.ms:LONG:0..:2000
      controller.performance.sample.period.ms:LONG:100..:60000 controller.quorum.append.linger.ms:INT:0..|*:25
      controller.quorum.auto.join.enable:BOOLEAN::false controller.quorum.bootstrap.servers:LIST::
      controller.quorum.election.backoff.max.ms:INT:0..|*:1000 controller.quorum.election.timeout.ms:INT:0..|*:1000
      controller.quorum.fetch.max.bytes:INT:1..:1048576 controller.quorum.fetch.snapshot.max.bytes:INT:1..:1048576
      controller.quorum.fetch.timeout.ms:INT:0..|*:2000 controller.quorum.request.timeout.ms:INT:0..|*:2000
      controller.quorum.retry.backoff.ms:INT:0..|*:20 controller.quorum.voters:LIST::
      controller.quota.window.num:INT:1..:11 controller.quota.window.size.seconds:INT:1..:1
      controller.socket.timeout.ms:INT::30000 cordoned.log.dirs:LIST:: create.topic.policy.class.name:CLASS::-
      default.replication.factor:INT::1 delegation.token.expiry.check.interval.ms:LONG:1..:3600000
      delegation.token.expiry.time.ms:LONG:1..:86400000 delegation.token.master.key:PASSWORD::-
      delegation.token.max.lifetime.ms:LONG:1..:604800000 delegation.token.secret.key:PASSWORD::-
      delete.records.purgatory.purge.interval.requests:INT::1 delete.topic.enable:BOOLEAN::true
      early.start.listeners:LIST::- eligible.leader.replicas.enable:BOOLEAN::false
      errors.deadletterqueue.auto.create.topics.enable:BOOLEAN::false
      errors.deadletterqueue.topic.name.prefix:STRING::dlq. fetch.max.bytes:INT:1024..:57671680
      fetch.purgatory.purge.interval.requests:INT::1000 follower.fetch.last.tiered.offset.enable:BOOLEAN::false
      follower.replication.throttled.rate:LONG:0..:9223372036854775807
      group.consumer.assignment.interval.ms:INT:0..:1000 group.consumer.assignor.offload.enable:BOOLEAN::true
      group.consumer.assignors:LIST::uniform%2Crange group.consumer.heartbeat.interval.ms:INT:1..:5000
      group.consumer.max.assignment.interval.ms:INT:0..:15000 group.consumer.max.heartbeat.interval.ms:INT:1..:15000
      group.consumer.max.session.timeout.ms:INT:1..:60000 group.consumer.max.size:INT:1..:2147483647
      group.consumer.migration.policy:STRING:IN:BIDIRECTIONAL,DISABLED,DOWNGRADE,UPGRADE:bidirectional
      group.consumer.min.assignment.interval.ms:INT:0..:0 group.consumer.min.heartbeat.interval.ms:INT:1..:5000
      group.consumer.min.session.timeout.ms:INT:1..:45000 group.consumer.regex.refresh.interval.ms:INT:10000..:600000
      group.consumer.session.timeout.ms:INT:1..:45000 group.coordinator.append.linger.ms:INT:-1..|0..:-1
      group.coordinator.background.threads:INT:1..:2 group.coordinator.cached.buffer.max.bytes:INT:524288..:1048588
      group.coordinator.new.enable:BOOLEAN::true
      group.coordinator.rebalance.protocols:LIST:list:classic,consumer,share,streams|list:classic,consumer,share|list:classic,consumer,share,unknown|list:classic,consumer,unknown|list:classic,consumer:classic%2Cconsumer%2Cstreams
      group.coordinator.threads:INT:1..:4 group.initial.rebalance.delay.ms:INT::3000
      group.max.session.timeout.ms:INT::1800000 group.max.size:INT:1..:2147483647 group.min.session.timeout.ms:INT::6000
      group.share.assignment.interval.ms:INT:0..:1000 group.share.assignor.offload.enable:BOOLEAN::true
      group.share.assignors:LIST::simple group.share.delivery.count.limit:INT:2..10:5
      group.share.dlq.manager.class.name:STRING::org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager
      group.share.enable:BOOLEAN::false group.share.heartbeat.interval.ms:INT:1..:5000
      group.share.initialize.retry.interval.ms:INT:1..:30000 group.share.max.assignment.interval.ms:INT:0..:15000
      group.share.max.delivery.count.limit:INT:5..25:10 group.share.max.groups:SHORT:1..100:10
      group.share.max.heartbeat.interval.ms:INT:1..:15000
      group.share.max.partition.max.record.locks:INT:2000..10000:4000
      group.share.max.record.lock.duration.ms:INT:30000..3600000:60000 group.share.max.session.timeout.ms:INT:1..:60000
      group.share.max.share.sessions:INT:1..:2000 group.share.max.size:INT:1..1000|10..1000:200
      group.share.min.assignment.interval.ms:INT:0..:0 group.share.min.delivery.count.limit:INT:2..5:2
      group.share.min.heartbeat.interval.ms:INT:1..:5000 group.share.min.partition.max.record.locks:INT:100..2000:100
      group.share.min.record.lock.duration.ms:INT:1000..30000:15000 group.share.min.session.timeout.ms:INT:1..:45000
      group.share.partition.max.record.locks:INT:100..10000:2000
      group.share.persister.class.name:STRING::org.apache.kafka.server.share.persister.DefaultStatePersister
      group.share.record.lock.duration.ms:INT:1000..3600000|1000..60000:30000
      group.share.session.timeout.ms:INT:1..:45000 group.streams.acceptable.recovery.lag:LONG:0..:10000
      group.streams.assignment.interval.ms:INT:0..:1000 group.streams.assignor.offload.enable:BOOLEAN::true
      group.streams.assignors:LIST::sticky group.streams.heartbeat.interval.ms:INT:1..:5000
      group.streams.initial.rebalance.delay.ms:INT:0..:3000 group.streams.max.assignment.interval.ms:INT:0..:15000
      group.streams.max.heartbeat.interval.ms:INT:1..:15000 group.streams.max.session.timeout.ms:INT:1..:60000
      group.streams.max.size:INT:1..:2147483647 group.streams.max.standby.replicas:INT:0..:2
      group.streams.max.warmup.replicas:INT:0..:20 group.streams.min.assignment.interval.ms:INT:0..:0
      group.streams.min.heartbeat.interval.ms:INT:1..:5000 group.streams.min.session.timeout.ms:INT:1..:45000
      group.streams.min.task.offset.interval.ms:INT:1..:15000 group.streams.num.standby.replicas:INT:0..:0
      group.streams.num.warmup.replicas:INT:0..:2 group.streams.rack.aware.assignment.tags:LIST::
      group.streams.session.timeout.ms:INT:1..:45000 group.streams.task.offset.interval.ms:INT:1..:60000
      group.streams.topology.description.plugin.class:CLASS::- initial.broker.registration.timeout.ms:INT::60000
      inter.broker.listener.name:STRING::- inter.broker.protocol.version:STRING::3.9-IV0
      internal.metadata.delete.delay.millis:LONG::60000 internal.metadata.log.segment.bytes:INT::-
      internal.metadata.max.batch.size.in.bytes:INT::8388608 internal.metadata.max.fetch.size.in.bytes:INT::8388608
      kafka.metrics.polling.interval.secs:INT:1..:10 kafka.metrics.reporters:LIST::
      leader.imbalance.check.interval.seconds:LONG:1..:300 leader.imbalance.per.broker.percentage:INT::10
      leader.replication.throttled.rate:LONG:0..:9223372036854775807
      listener.security.protocol.map:STRING::SASL_SSL%3ASASL_SSL%2CPLAINTEXT%3APLAINTEXT%2CSSL%3ASSL%2CSASL_PLAINTEXT%3ASASL_PLAINTEXT
      listeners:LIST::PLAINTEXT%3A%2F%2F%3A9092 log.cleaner.backoff.ms:LONG:0..:15000
      log.cleaner.dedupe.buffer.size:LONG::134217728 log.cleaner.delete.retention.ms:LONG:0..:86400000
      log.cleaner.enable:BOOLEAN::true log.cleaner.io.buffer.load.factor:DOUBLE::0.9
      log.cleaner.io.buffer.size:INT:0..:524288 log.cleaner.io.max.bytes.per.second:DOUBLE::1.7976931348623157E308
      log.cleaner.max.compaction.lag.ms:LONG:1..:9223372036854775807 log.cleaner.min.cleanable.ratio:DOUBLE:0..1:0.5
      log.cleaner.min.compaction.lag.ms:LONG:0..:0 log.cleaner.threads:INT:0..:1
      log.cleanup.policy:LIST:list:compact,delete:delete log.dir:LIST::%2Ftmp%2Fkafka-logs
      log.dir.failure.timeout.ms:LONG:1..:30000 log.dirs:LIST::-
      log.flush.interval.messages:LONG:1..:9223372036854775807 log.flush.interval.ms:LONG::-
      log.flush.offset.checkpoint.interval.ms:INT:0..:60000 log.flush.scheduler.interval.ms:LONG::9223372036854775807
      log.flush.start.offset.checkpoint.interval.ms:INT:0..:60000 log.index.interval.bytes:INT:0..:4096
      log.index.size.max.bytes:INT:4..:10485760 log.initial.task.delay.ms:LONG:0..:30000
      log.local.retention.bytes:LONG:-2..:-2 log.local.retention.ms:LONG:-2..:-2
      log.message.downconversion.enable:BOOLEAN::true log.message.format.version:STRING::3.0-IV1
      log.message.timestamp.after.max.ms:LONG:0..:3600000
      log.message.timestamp.before.max.ms:LONG:0..:9223372036854775807
      log.message.timestamp.difference.max.ms:LONG:0..:9223372036854775807
      log.message.timestamp.type:STRING:in:CreateTime,LogAppendTime:CreateTime log.preallocate:BOOLEAN::false
      log.remote.copy.lag.bytes:LONG:-1..:-1 log.remote.copy.lag.ms:LONG:-1..:0 log.retention.bytes:LONG::-1
      log.retention.check.interval.ms:LONG:1..:300000 log.retention.hours:INT::168 log.retention.minutes:INT::-
      log.retention.ms:LONG::- log.roll.hours:INT:1..:168 log.roll.jitter.hours:INT:0..:0 log.roll.jitter.ms:LONG::-
      log.roll.ms:LONG::- log.segment.bytes:INT:1048576..|14..:1073741824 log.segment.delete.delay.ms:LONG:0..:60000
      max.connection.creation.rate:INT:0..:2147483647 max.connections:INT:0..:2147483647
      max.connections.per.ip:INT:0..:2147483647 max.connections.per.ip.overrides:STRING::
      max.decompressed.message.bytes:INT:1..2147483639:2147483639 max.incremental.fetch.session.cache.slots:INT:0..:1000
      max.request.partition.size.limit:INT:1..:2000 message.max.bytes:INT:0..:1048588 metadata.log.dir:STRING::-
      metadata.log.max.record.bytes.between.snapshots:LONG:1..:20971520
      metadata.log.max.snapshot.interval.ms:LONG:0..:3600000 metadata.log.segment.bytes:INT:8388608..|12..:1073741824
      metadata.log.segment.min.bytes:INT:12..:8388608 metadata.log.segment.ms:LONG::604800000
      metadata.max.idle.interval.ms:INT:0..:500 metadata.max.retention.bytes:LONG::104857600
      metadata.max.retention.ms:LONG::604800000 metric.reporters:LIST::org.apache.kafka.common.metrics.JmxReporter
      metrics.num.samples:INT:1..:2 metrics.recording.level:STRING::INFO metrics.sample.window.ms:LONG:1..:30000
      min.insync.replicas:INT:1..:1 node.id:INT:0..|*:- num.io.threads:INT:1..:8 num.network.threads:INT:1..:3
      num.partitions:INT:1..:1 num.recovery.threads.per.data.dir:INT:1..:2 num.replica.alter.log.dirs.threads:INT::-
      num.replica.fetchers:INT:1..|*:1 offset.metadata.max.bytes:INT::4096 offsets.commit.required.acks:SHORT::-1
      offsets.commit.timeout.ms:INT:1..:5000 offsets.load.buffer.size:INT:1..:5242880
      offsets.retention.check.interval.ms:LONG:1..:600000 offsets.retention.minutes:INT:1..:10080
      offsets.topic.compression.codec:INT::0 offsets.topic.num.partitions:INT:1..:50
      offsets.topic.replication.factor:SHORT:1..:3 offsets.topic.segment.bytes:INT:1..:104857600
      password.encoder.cipher.algorithm:STRING::AES%2FCBC%2FPKCS5Padding password.encoder.iterations:INT:1024..:4096
      password.encoder.key.length:INT:8..:128 password.encoder.keyfactory.algorithm:STRING::-
      password.encoder.old.secret:PASSWORD::- password.encoder.secret:PASSWORD::-
      principal.builder.class:CLASS::org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
      process.roles:LIST:list:broker,controller:- producer.id.expiration.check.interval.ms:INT:1..:600000
      producer.id.expiration.ms:INT:1..:86400000 producer.purgatory.purge.interval.requests:INT::1000
      queued.max.request.bytes:LONG::-1 queued.max.requests:INT:1..:500 quota.window.num:INT:1..:11
      quota.window.size.seconds:INT:1..:1 remote.fetch.max.wait.ms:INT:1..:500
      remote.list.offsets.request.timeout.ms:LONG:1..:30000
      remote.log.index.file.cache.total.size.bytes:LONG:1..:1073741824
      remote.log.index.file.cache.ttl.ms:LONG:-1..:900000 remote.log.manager.copier.thread.pool.size:INT:1..|*:10
      remote.log.manager.copy.max.bytes.per.second:LONG:1..:9223372036854775807
      remote.log.manager.copy.quota.window.num:INT:1..:11 remote.log.manager.copy.quota.window.size.seconds:INT:1..:1
      remote.log.manager.expiration.thread.pool.size:INT:1..|*:10
      remote.log.manager.fetch.max.bytes.per.second:LONG:1..:9223372036854775807
      remote.log.manager.fetch.quota.window.num:INT:1..:11 remote.log.manager.fetch.quota.window.size.seconds:INT:1..:1
      remote.log.manager.follower.thread.pool.size:INT:1..:2 remote.log.manager.task.interval.ms:LONG:1..:30000
      remote.log.manager.task.retry.backoff.max.ms:LONG:1..:30000 remote.log.manager.task.retry.backoff.ms:LONG:1..:500
      remote.log.manager.task.retry.jitter:DOUBLE:0..0.5:0.2 remote.log.manager.thread.pool.size:INT:1..:2
      remote.log.metadata.custom.metadata.max.bytes:INT:0..:128
      remote.log.metadata.manager.class.name:STRING::org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
      remote.log.metadata.manager.class.path:STRING::- remote.log.metadata.manager.impl.prefix:STRING::rlmm.config.
      remote.log.metadata.manager.listener.name:STRING::- remote.log.reader.max.pending.tasks:INT:1..:100
      remote.log.reader.threads:INT:1..:10 remote.log.storage.manager.class.name:STRING::-
      remote.log.storage.manager.class.path:STRING::- remote.log.storage.manager.impl.prefix:STRING::rsm.config.
      remote.log.storage.system.enable:BOOLEAN::false
      replica.alter.log.dirs.io.max.bytes.per.second:LONG:0..:9223372036854775807 replica.fetch.backoff.ms:INT:0..:1000
      replica.fetch.max.bytes:INT:0..:1048576 replica.fetch.min.bytes:INT::1
      replica.fetch.response.max.bytes:INT:0..:10485760 replica.fetch.wait.max.ms:INT::500
      replica.high.watermark.checkpoint.interval.ms:LONG::5000 replica.lag.time.max.ms:LONG::30000
      replica.selector.class:STRING::- replica.socket.receive.buffer.bytes:INT::65536
      replica.socket.timeout.ms:INT::30000 replication.quota.window.num:INT:1..:11
      replication.quota.window.size.seconds:INT:1..:1 request.timeout.ms:INT::30000 reserved.broker.max.id:INT:0..:1000
      sasl.client.callback.handler.class:CLASS::- sasl.enabled.mechanisms:LIST::GSSAPI sasl.jaas.config:PASSWORD::-
      sasl.kerberos.kinit.cmd:STRING::%2Fusr%2Fbin%2Fkinit sasl.kerberos.min.time.before.relogin:LONG::60000
      sasl.kerberos.principal.to.local.rules:LIST::DEFAULT sasl.kerberos.service.name:STRING::-
      sasl.kerberos.ticket.renew.jitter:DOUBLE::0.05 sasl.kerberos.ticket.renew.window.factor:DOUBLE::0.8
      sasl.login.callback.handler.class:CLASS::- sasl.login.class:CLASS::- sasl.login.connect.timeout.ms:INT::-
      sasl.login.read.timeout.ms:INT::- sasl.login.refresh.buffer.seconds:SHORT::300
      sasl.login.refresh.min.period.seconds:SHORT::60 sasl.login.refresh.window.factor:DOUBLE::0.8
      sasl.login.refresh.window.jitter:DOUBLE::0.05 sasl.login.retry.backoff.max.ms:LONG::10000
      sasl.login.retry.backoff.ms:LONG::100 sasl.mechanism.controller.protocol:STRING::GSSAPI
      sasl.mechanism.inter.broker.protocol:STRING::GSSAPI sasl.oauthbearer.allow.unverified.audience:BOOLEAN::false
      sasl.oauthbearer.allow.unverified.issuer:BOOLEAN::false
      sasl.oauthbearer.assertion.algorithm:STRING:IN:ES256,RS256:RS256 sasl.oauthbearer.assertion.claim.aud:STRING::-
      sasl.oauthbearer.assertion.claim.exp.seconds:INT:0..86400:300 sasl.oauthbearer.assertion.claim.iss:STRING::-
      sasl.oauthbearer.assertion.claim.jti.include:BOOLEAN::false
      sasl.oauthbearer.assertion.claim.nbf.seconds:INT:0..3600:60 sasl.oauthbearer.assertion.claim.sub:STRING::-
      sasl.oauthbearer.assertion.file:STRING::- sasl.oauthbearer.assertion.private.key.file:STRING::-
      sasl.oauthbearer.assertion.private.key.passphrase:PASSWORD::- sasl.oauthbearer.assertion.template.file:STRING::-
      sasl.oauthbearer.client.credentials.client.id:STRING::-
      sasl.oauthbearer.client.credentials.client.secret:PASSWORD::- sasl.oauthbearer.clock.skew.seconds:INT::30
      sasl.oauthbearer.expected.audience:LIST:: sasl.oauthbearer.expected.issuer:STRING::-
      sasl.oauthbearer.jwks.endpoint.refresh.ms:LONG::3600000
      sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms:LONG::10000
      sasl.oauthbearer.jwks.endpoint.retry.backoff.ms:LONG::100 sasl.oauthbearer.jwks.endpoint.url:STRING::-
      sasl.oauthbearer.jwt.retriever.class:CLASS::org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
      sasl.oauthbearer.jwt.validator.class:CLASS::org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
      sasl.oauthbearer.scope:STRING::- sasl.oauthbearer.scope.claim.name:STRING::scope
      sasl.oauthbearer.sub.claim.name:STRING::sub sasl.oauthbearer.token.endpoint.url:STRING::-
      sasl.server.callback.handler.class:CLASS::- sasl.server.max.receive.size:INT::524288
      security.inter.broker.protocol:STRING:in:PLAINTEXT,SASL_PLAINTEXT,SASL_SSL,SSL:PLAINTEXT
      security.providers:STRING::- server.max.startup.time.ms:LONG:0..:9223372036854775807
      share.coordinator.append.linger.ms:INT:-1..|0..:-1 share.coordinator.cached.buffer.max.bytes:INT:524288..:1048588
      share.coordinator.cold.partition.snapshot.interval.ms:INT:1..:300000
      share.coordinator.load.buffer.size:INT:1..:5242880
      share.coordinator.snapshot.update.records.per.snapshot:INT:0..500|0..:500
      share.coordinator.state.topic.compression.codec:INT::0 share.coordinator.state.topic.min.isr:SHORT:1..:2
      share.coordinator.state.topic.num.partitions:INT:1..:50
      share.coordinator.state.topic.prune.interval.ms:INT:1..:300000
      share.coordinator.state.topic.replication.factor:SHORT:1..:3
      share.coordinator.state.topic.segment.bytes:INT:1..:104857600 share.coordinator.threads:INT:1..:1
      share.coordinator.write.timeout.ms:INT:1..:5000 share.fetch.max.fetch.records:INT::2147483647
      share.fetch.purgatory.purge.interval.requests:INT::1000 socket.connection.setup.timeout.max.ms:LONG::30000
      socket.connection.setup.timeout.ms:LONG::10000 socket.listen.backlog.size:INT:1..:50
      socket.receive.buffer.bytes:INT::102400 socket.request.max.bytes:INT:1..:104857600
      socket.send.buffer.bytes:INT::102400 ssl.allow.dn.changes:BOOLEAN::false ssl.allow.san.changes:BOOLEAN::false
      ssl.cipher.suites:LIST:: ssl.client.auth:STRING:in:none,requested,required:none
      ssl.enabled.protocols:LIST::TLSv1.2%2CTLSv1.3 ssl.endpoint.identification.algorithm:STRING::https
      ssl.engine.factory.class:CLASS::- ssl.key.password:PASSWORD::- ssl.keymanager.algorithm:STRING::SunX509
      ssl.keystore.certificate.chain:PASSWORD::- ssl.keystore.key:PASSWORD::- ssl.keystore.location:STRING::-
      ssl.keystore.password:PASSWORD::- ssl.keystore.type:STRING::JKS ssl.principal.mapping.rules:STRING::DEFAULT
      ssl.protocol:STRING::TLSv1.3 ssl.provider:STRING::- ssl.secure.random.implementation:STRING::-
      ssl.trustmanager.algorithm:STRING::PKIX ssl.truststore.certificates:PASSWORD::- ssl.truststore.location:STRING::-
      ssl.truststore.password:PASSWORD::- ssl.truststore.type:STRING::JKS telemetry.max.bytes:INT:1..:1048576
      transaction.abort.timed.out.transaction.cleanup.interval.ms:INT:1..:10000
      transaction.max.timeout.ms:INT:1..:900000 transaction.partition.verification.enable:BOOLEAN::true
      transaction.remove.expired.transaction.cleanup.interval.ms:INT:1..:3600000
      transaction.state.log.load.buffer.size:INT:1..:5242880 transaction.state.log.min.isr:INT:1..:2
      transaction.state.log.num.partitions:INT:1..:50 transaction.state.log.replication.factor:SHORT:1..:3
      transaction.state.log.segment.bytes:INT:1..:104857600 transaction.two.phase.commit.enable:BOOLEAN::false
      transactional.id.expiration.ms:INT:1..:604800000 unclean.leader.election.enable:BOOLEAN::false
      unclean.leader.election.interval.ms:LONG:1..:300000 unstable.api.versions.enable:BOOLEAN::false
      unstable.feature.versions.enable:BOOLEAN::false unstable.metadata.versions.enable:BOOLEAN::false
      zookeeper.clientCnxnSocket:STRING::- zookeeper.connect:STRING::- zookeeper.connection.timeout.ms:INT::-
      zookeeper.max.in.flight.requests:INT:1..:10 zookeeper.metadata.migration.enable:BOOLEAN::false
      zookeeper.metadata.migration.min.batch.size:INT:1..:200 zookeeper.session.timeout.ms:INT::18000
      zookeeper.set.acl:BOOLEAN::false zookeeper.ssl.cipher.suites:LIST::- zookeeper.ssl.client.enable:BOOLEAN::false
      zookeeper.ssl.crl.enable:BOOLEAN::false zookeeper.ssl.enabled.protocols:LIST::-
      zookeeper.ssl.endpoint.identification.algorithm:STRING::HTTPS zookeeper.ssl.keystore.location:STRING::-
      zookeeper.ssl.keystore.password:PASSWORD::- zookeeper.ssl.keystore.type:STRING::-
      zookeeper.ssl.ocsp.enable:BOOLEAN::false zookeeper.ssl.protocol:STRING::TLSv1.2
      zookeeper.ssl.truststore.location:STRING::- zookeeper.ssl.truststore.password:PASSWORD::-
      zookeeper.ssl.truststore.type:STRING::-
    """,
    "TOPIC": """
      cleanup.policy:LIST:list:compact,delete:delete compression.gzip.level:INT::-1 compression.lz4.level:INT:1..17:9
      compression.type:STRING:in:gzip,lz4,producer,snappy,uncompressed,zstd:producer
      compression.zstd.level:INT:-131072..22:3 delete.retention.ms:LONG:0..:86400000
      errors.deadletterqueue.group.enable:BOOLEAN::false file.delete.delay.ms:LONG:0..:60000
      flush.messages:LONG:1..:9223372036854775807 flush.ms:LONG:0..:9223372036854775807
      follower.replication.throttled.replicas:LIST:: index.interval.bytes:INT:0..:4096 internal.segment.bytes:INT::-
      leader.replication.throttled.replicas:LIST:: local.retention.bytes:LONG:-2..:-2 local.retention.ms:LONG:-2..:-2
      max.compaction.lag.ms:LONG:1..:9223372036854775807 max.decompressed.message.bytes:INT:1..2147483639:2147483639
      max.message.bytes:INT:0..:1048588 message.downconversion.enable:BOOLEAN::true
      message.format.version:STRING::3.0-IV1 message.timestamp.after.max.ms:LONG:0..:3600000
      message.timestamp.before.max.ms:LONG:0..:9223372036854775807
      message.timestamp.difference.max.ms:LONG:0..:9223372036854775807
      message.timestamp.type:STRING:in:CreateTime,LogAppendTime:CreateTime min.cleanable.dirty.ratio:DOUBLE:0..1:0.5
      min.compaction.lag.ms:LONG:0..:0 min.insync.replicas:INT:1..:1 preallocate:BOOLEAN::false
      remote.copy.lag.bytes:LONG:-1..:-1 remote.copy.lag.ms:LONG:-1..:0 remote.log.copy.disable:BOOLEAN::false
      remote.log.delete.on.disable:BOOLEAN::false remote.storage.enable:BOOLEAN::false retention.bytes:LONG::-1
      retention.ms:LONG:-1..:604800000 segment.bytes:INT:1048576..|14..:1073741824 segment.index.bytes:INT:4..:10485760
      segment.jitter.ms:LONG:0..:0 segment.ms:LONG:1..:604800000 unclean.leader.election.enable:BOOLEAN::false
    """,
    "GROUP": """
      consumer.assignment.interval.ms:INT:0..:1000 consumer.assignor.offload.enable:BOOLEAN::true
      consumer.heartbeat.interval.ms:INT:1..:5000 consumer.session.timeout.ms:INT:1..:45000
      errors.deadletterqueue.copy.record.enable:BOOLEAN::false errors.deadletterqueue.topic.name:STRING::
      share.assignment.interval.ms:INT:0..:1000 share.assignor.offload.enable:BOOLEAN::true
      share.auto.offset.reset:STRING::latest share.delivery.count.limit:INT:2..:5
      share.heartbeat.interval.ms:INT:1..:5000
      share.isolation.level:STRING:in:read_committed,read_uncommitted:read_uncommitted
      share.partition.max.record.locks:INT:100..:2000 share.record.lock.duration.ms:INT:1000..:30000
      share.renew.acknowledge.enable:BOOLEAN::true share.session.timeout.ms:INT:1..:45000
      streams.acceptable.recovery.lag:LONG:0..:10000 streams.assignment.interval.ms:INT:0..:1000
      streams.assignor.name:STRING::- streams.assignor.offload.enable:BOOLEAN::true
      streams.heartbeat.interval.ms:INT:1..:5000 streams.initial.rebalance.delay.ms:INT:0..:3000
      streams.num.standby.replicas:INT:0..:0 streams.num.warmup.replicas:INT:0..:2
      streams.rack.aware.assignment.tags:LIST:: streams.session.timeout.ms:INT:1..:45000
      streams.task.offset.interval.ms:INT:1..:60000
    """,
    "CLIENT_METRICS": """
      interval.ms:INT::300000 match:LIST:: metrics:LIST::
    """,
}
