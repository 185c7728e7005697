#!/usr/bin/env python3
"""Backups in an object store, with a server that speaks S3: taken, checked, damaged, restored into a cluster of another shape; the
store ends while a backup is being written, and a process that takes one is killed.
object_store.py [--binary target/release/latsdb] [--sql-port 15980]"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from backup import content, expect, fill_odd
from blackout import Durable
from kill import Cluster, connect

BUCKET = "backups"


def packages():
    """Where scripts/setup.sh --tests has put what tests/requirements.txt names."""
    requirements = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements.txt")
    with open(requirements, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "latsdb-tests", f"python-{digest}")


class Store:
    """A server that speaks S3 and keeps everything in memory."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        url = f"http://127.0.0.1:{self.port}"
        self.environment = dict(os.environ, AWS_ENDPOINT_URL=url, AWS_ALLOW_HTTP="true", AWS_ACCESS_KEY_ID="test",
                                AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1")
        with_packages = dict(os.environ, PYTHONPATH=packages())
        self.server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                                       env=with_packages, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sys.path.append(packages())
        import boto3  # pylint: disable=import-outside-toplevel
        self.client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
                                   aws_secret_access_key="test")
        end = time.monotonic() + 30
        while True:
            try:
                self.client.create_bucket(Bucket=BUCKET)
                return
            except Exception:  # It is starting.
                assert time.monotonic() < end and self.server.poll() is None, "the store does not start"
                time.sleep(0.1)

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


def large(connection):
    return connection.query("SELECT COUNT(*), SUM(CRC32(data)), MIN(id), MAX(id) FROM large")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15980)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"object_store: seed {args.seed}", flush=True)
    chooser, above = random.Random(args.seed), tempfile.mkdtemp(prefix="latsdb-objects-")
    store, archive = Store(), os.path.join(above, "archive")
    cluster, other = Durable(args.binary, args.sql_port, "--archive", archive), None

    def run(*arguments, kept=store.environment, patience=120):
        return subprocess.run([args.binary, *arguments], capture_output=True, text=True, timeout=patience, check=False, env=kept)

    def backup(to):
        return run("backup", "--data-dir", cluster.directory, "--to", to)

    try:
        setup = connect(args.sql_port, 60)
        fill_odd(setup)
        fill_large(setup, chooser)
        odd, much, place = content(setup), large(setup), f"s3://{BUCKET}/daily/1"
        expect(backup(place), 0, rf"backup of .* in {place}")
        assert store.names("daily/1") == ["backup.lats", "rows-0001.lats"] and not store.uploads("daily/1"), store.names("daily/1")
        expect(backup(place), 1, "is not empty; name a new one")
        expect(run("backup", "verify", place), 0, "it is whole")
        expect(run("backup", "verify", f"s3://{BUCKET}/none"), 1, "it is no backup")
        expect(run("backup", "verify", "s3://no-such-bucket/x"), 1, "NoSuchBucket|not found|no backup")
        expect(run("backup", "verify", "ftp://host/x"), 1, "name a directory, or s3://")
        # What happened later comes from an archive.
        setup.query("INSERT INTO keyless VALUES (3, 'later')")
        later = content(setup)
        time.sleep(2)
        other = Cluster(args.binary, args.sql_port + 20, "--nodes", "4")
        target = ("restore", "--data-dir", other.directory, "--from", place)
        expect(run(*target), 0, "restored 4 tables")
        # On a busy machine a node may have been started once more.
        other.wait_whole()
        there = connect(args.sql_port + 22, 60)
        assert content(there) == odd and large(there) == much, "other rows were restored"
        for table in ("odd", "keyless", "large", "empty_one.nothing"):
            there.query(f"DROP TABLE {table}")
        expect(run(*target, "--archive", archive), 0, "restored 4 tables")
        there = connect(args.sql_port + 22, 60)
        assert content(there) == later and large(there) == much, "other rows were restored"
        # A byte is another one.
        key = "daily/1/rows-0001.lats"
        rows = bytearray(store.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
        assert len(rows) > 16 << 20, f"{len(rows)} bytes are too few to be sent in several chunks"
        rows[chooser.randrange(len(rows))] ^= 1 << chooser.randrange(8)
        store.client.put_object(Bucket=BUCKET, Key=key, Body=bytes(rows))
        expect(run("backup", "verify", place), 1, "it is damaged: use another backup")
        # Killed at any moment it leaves no backup.
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
        # The store ends meanwhile: an error that says where, and what may be left; and the cluster does not mind.
        to = f"s3://{BUCKET}/late"
        taking = subprocess.Popen([args.binary, "backup", "--data-dir", cluster.directory, "--to", to], env=store.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while taking.poll() is None and not store.uploads("late"):
            time.sleep(0.005)
        store.end()
        began = time.monotonic()
        said, _ = taking.communicate(timeout=200)
        if taking.returncode == 0:
            print("object_store: the backup was quicker than the end of the store", flush=True)
        else:
            assert f"what was written to {to} by then may still be there" in said, said
            print(f"object_store: the store ended: said after {time.monotonic() - began:.1f} s", flush=True)
        # Nobody answers there.
        began = time.monotonic()
        expect(run("backup", "--data-dir", cluster.directory, "--to", f"s3://{BUCKET}/never", patience=200), 1, f"{BUCKET}/never")
        print(f"object_store: nobody answers: said after {time.monotonic() - began:.1f} s", flush=True)
        assert content(setup) == later
    finally:
        store.end()
        for one in filter(None, (cluster, other)):
            one.run("stop")
            shutil.rmtree(os.path.dirname(one.directory))
        shutil.rmtree(above)
    print("object_store: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
