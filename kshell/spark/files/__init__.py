"""The files of a read: ``scan`` finds them, ``plan`` reads batch headers, ``pack`` cuts, ``read`` reads. No Spark."""
