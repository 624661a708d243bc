"""Records of metadata logs, what could not be read, and two tables made of them. Functions DataFrame -> DataFrame."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

spark = SparkSession.active()


def kraft(view: str):
    """A view of the logs that the configuration ``spark.kraft.source`` names."""
    return spark.read.format("kraft").option("view", view).load(spark.conf.get("spark.kraft.source"))


@dp.materialized_view(comment="every record of every copy")
def records():
    return kraft("records")


@dp.materialized_view(comment="what could not be read or decoded, with the reason")
def quarantine():
    return kraft("quarantine")


@dp.materialized_view(comment="the topics that were ever made, with their ids")
def topics_made():
    topics = kraft("TOPIC_RECORD")
    return topics.select("clusterId", "offset", "timestampMs", "name", "topicId")


@dp.materialized_view(comment="records of each type by hour")
def hourly_records():
    hour = fn.date_trunc("hour", fn.timestamp_millis("timestampMs")).alias("hour")
    return spark.read.table("records").groupBy("clusterId", hour, "type").count()
