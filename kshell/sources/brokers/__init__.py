"""Brokers as a source: a partial image, made of their answers to requests such as DescribeTopicPartitions."""
