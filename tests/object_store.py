#!/usr/bin/env python3
"""Backups in an object store, with a server that speaks S3: taken, checked, damaged, restored into a cluster of another shape; the
store ends while a backup is being written, and a process that takes one is killed.
object_store.py [--binary target/release/latsdb] [--sql-port 15980]"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from backup import content, expect, fill_odd
from cluster import PATIENCE_S, Cluster, Durable, connect, repeated, rows, wait_until

BUCKET = "backups"
# The store's port beside the cluster's first.
STORE = 90


def packages():
    """Where scripts/setup.sh --tests has put what tests/requirements.txt names."""
    requirements = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements.txt")
    with open(requirements, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "latsdb-tests", f"python-{digest}")


class Store:
    """A server that speaks S3 and keeps everything in memory."""

    def __init__(self, port):
        url = f"http://127.0.0.1:{port}"
        self.environment = dict(os.environ, AWS_ENDPOINT_URL=url, AWS_ALLOW_HTTP="true", AWS_ACCESS_KEY_ID="test",
                                AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1")
        with_packages = dict(os.environ, PYTHONPATH=packages())
        self.server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                                       env=with_packages, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sys.path.append(packages())
        import boto3  # pylint: disable=import-outside-toplevel
        self.client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
                                   aws_secret_access_key="test")
        try:
            wait_until("the store starts", self.has_bucket)
        except BaseException:
            self.end()
            raise

    def has_bucket(self):
        assert self.server.poll() is None, "the store does not start"
        try:
            others = self.client.list_buckets()["Buckets"]
        except Exception:  # It is starting.
            return False
        # Of a run that was killed: it must not be taken for ours.
        assert not others, "another store is at the port; end it first"
        self.client.create_bucket(Bucket=BUCKET)
        return True

    def names(self, below):
        listed = self.client.list_objects_v2(Bucket=BUCKET, Prefix=below + "/")
        return sorted(entry["Key"].rsplit("/", 1)[1] for entry in listed.get("Contents", []))

    def uploads(self, below):
        listed = self.client.list_multipart_uploads(Bucket=BUCKET)
        return [entry for entry in listed.get("Uploads", []) if entry["Key"].startswith(below + "/")]

    def end(self):
        self.server.kill()
        self.server.wait()


def fill_large(connection, chooser):
    """Rows that do not become smaller, so that there is more than one chunk."""
    connection.query("CREATE TABLE large (id INT PRIMARY KEY, data VARBINARY(2000))")
    for at in range(0, 20_000, 200):
        values = ",".join(f"({i},x'{chooser.randbytes(1_000).hex()}')" for i in range(at, at + 200))
        connection.query("INSERT INTO large VALUES " + values)


def large(port):
    return rows(port, "SELECT COUNT(*), SUM(CRC32(data)), MIN(id), MAX(id) FROM large")


def restored_elsewhere(args, run, cluster, archive, place, odd, much):
    """Rows of the backup, and what happened later, in a cluster of another shape."""
    # What happened later comes from an archive.
    setup = connect(args.sql_port)
    setup.query("SET durability = 'disk'")
    setup.query("INSERT INTO keyless VALUES (3, 'later')")
    later, durable = content(args.sql_port), max(n["durable"] for n in epochs(run, cluster))

    def is_archived():
        ranges = json.loads(run("archive", "show", archive, "--json").stdout or "[{}]")[0].get("ranges", [])
        return any(r["to_epoch"] >= durable for r in ranges)

    wait_until("what happened later is archived", is_archived, cluster.describe)
    with Cluster(args.binary, args.sql_port + 20, "--nodes", "4") as other, other.undisturbed():
        target = ("restore", "--data-dir", other.directory, "--from", place)
        expect(run(*target), 0, "restored 4 tables")
        there = args.sql_port + 22
        assert content(there) == odd and large(there) == much, "other rows were restored"
        for table in ("odd", "keyless", "large", "empty_one.nothing"):
            rows(there, f"DROP TABLE IF EXISTS {table}")
        expect(run(*target, "--archive", archive), 0, "restored 4 tables")
        assert content(there) == later and large(there) == much, "other rows were restored"
    return later


def epochs(run, cluster):
    """What each node knows of epochs."""
    secret = os.path.join(cluster.directory, "secret")
    asked = [run("status", "--json", "--address", node["native_address"], "--secret-file", secret) for node in cluster.nodes()]
    return [json.loads(said.stdout)["epoch"] for said in asked]


def killed(args, run, store, cluster, chooser):
    """Killed at any moment it leaves no backup."""
    for number in range(3):
        to = f"s3://{BUCKET}/killed/{number}"
        taking = subprocess.Popen([args.binary, "backup", "--data-dir", cluster.directory, "--to", to],
                                  env=store.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chooser.uniform(0.05, 0.6))
        taking.send_signal(signal.SIGKILL)
        taking.wait()
        names = store.names(f"killed/{number}")
        verified = run("backup", "verify", to)
        whole = "backup.lats" in names
        expect(verified, 0 if whole else 1, "it is whole" if whole else "it is no backup")
        print(f"object_store: killed, {names} are there", flush=True)


def store_ends(args, run, store, cluster):
    """The store ends meanwhile: an error that says where, and what may be left."""
    to = f"s3://{BUCKET}/late"
    taking = subprocess.Popen([args.binary, "backup", "--data-dir", cluster.directory, "--to", to], env=store.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while taking.poll() is None and not store.uploads("late"):
        time.sleep(0.005)
    store.end()
    began = time.monotonic()
    said, _ = taking.communicate(timeout=2 * PATIENCE_S)
    if taking.returncode == 0:
        print("object_store: the backup was quicker than the end of the store", flush=True)
    else:
        assert f"what was written to {to} by then may still be there" in said, said
        print(f"object_store: the store ended: said after {time.monotonic() - began:.1f} s", flush=True)
    # Nobody answers there.
    began = time.monotonic()
    expect(run("backup", "--data-dir", cluster.directory, "--to", f"s3://{BUCKET}/never"), 1, f"{BUCKET}/never")
    print(f"object_store: nobody answers: said after {time.monotonic() - began:.1f} s", flush=True)


def with_store(args, store, cluster, archive, chooser):
    def run(*arguments):
        return subprocess.run([args.binary, *arguments], capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False,
                              env=store.environment)

    def backup(to):
        return run("backup", "--data-dir", cluster.directory, "--to", to)

    setup = connect(args.sql_port)
    fill_odd(setup)
    fill_large(setup, chooser)
    odd, much, place = content(args.sql_port), large(args.sql_port), f"s3://{BUCKET}/daily/1"
    expect(backup(place), 0, rf"backup of .* in {place}")
    assert store.names("daily/1") == ["backup.lats", "rows-0001.lats"] and not store.uploads("daily/1"), store.names("daily/1")
    expect(backup(place), 1, "is not empty; name a new one")
    expect(run("backup", "verify", place), 0, "it is whole")
    expect(run("backup", "verify", f"s3://{BUCKET}/none"), 1, "it is no backup")
    expect(run("backup", "verify", "s3://no-such-bucket/x"), 1, "NoSuchBucket|not found|no backup")
    expect(run("backup", "verify", "ftp://host/x"), 1, "name a directory, or s3://")
    later = restored_elsewhere(args, run, cluster, archive, place, odd, much)
    # A byte is another one.
    key = "daily/1/rows-0001.lats"
    data = bytearray(store.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    assert len(data) > 16 << 20, f"{len(data)} bytes are too few to be sent in several chunks"
    data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)
    store.client.put_object(Bucket=BUCKET, Key=key, Body=bytes(data))
    expect(run("backup", "verify", place), 1, "it is damaged: use another backup")
    killed(args, run, store, cluster, chooser)
    store_ends(args, run, store, cluster)
    # The cluster does not mind.
    assert content(args.sql_port) == later


def once(args, chooser):
    above = tempfile.mkdtemp(prefix="latsdb-objects-")
    archive, store = os.path.join(above, "archive"), Store(args.sql_port + STORE)
    try:
        with Durable(args.binary, args.sql_port, "--archive", archive) as cluster, cluster.undisturbed():
            with_store(args, store, cluster, archive, chooser)
    finally:
        store.end()
    shutil.rmtree(above)
    print("object_store: all is right")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15980)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"object_store: seed {args.seed}", flush=True)
    chooser = random.Random(args.seed)
    return repeated("object_store", lambda: once(args, chooser))


if __name__ == "__main__":
    sys.exit(main())
