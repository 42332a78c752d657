# needs: pip redis==8.1.0 psycopg[binary]==3.3.9 pymysql==1.2.4 boto3==1.44.8 moto[server]==5.2.5
"""The checks of docs/fencing.md: each resource accepts the holder of the lock, and turns away whoever held it before.

PostgreSQL and MariaDB are left out where they are not installed; S3 is moto's.
"""

import contextlib
import glob
import http.server
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import boto3
import moto
import psycopg
import pymysql
import redis
from botocore.exceptions import ClientError

UPDATE = """
    UPDATE invoices SET state = %(state)s, fence = %(fence)s
    WHERE id = 42 AND fence <= %(fence)s
"""
CLAIM = """
    UPDATE fences SET fence = %(fence)s
    WHERE name = 'invoices' AND fence <= %(fence)s
"""
SCRIPT = """
    if tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') > tonumber(ARGV[1]) then
      return 0
    end
    redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'state', ARGV[2])
    return 1
"""


def put(s3, bucket, key, fence, state):
    """Writes the object; False if there has been a later holder."""
    while True:
        try:
            seen = s3.get_object(Bucket=bucket, Key=key)
            if json.load(seen["Body"])["fence"] > fence:
                return False
            unchanged = {"IfMatch": seen["ETag"]}
        except s3.exceptions.NoSuchKey:
            unchanged = {"IfNoneMatch": "*"}
        body = json.dumps({"fence": fence, "state": state})
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body, **unchanged)
            return True
        except ClientError as error:  # 409, 412: somebody wrote in between
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (409, 412):
                raise


class Invoices(http.server.BaseHTTPRequestHandler):
    one_at_a_time = threading.Lock()
    stored = {}  # path: (fence, state)

    def do_PUT(self):
        fence = int(self.headers["Fence"])
        state = self.rfile.read(int(self.headers["Content-Length"]))
        with self.one_at_a_time:
            highest, _ = self.stored.get(self.path, (0, None))
            if fence >= highest:
                self.stored[self.path] = (fence, state)
        self.send_response(204 if fence >= highest else 412)
        self.end_headers()

    def log_message(self, *_):
        """Says nothing."""


def holders(node):
    """The tokens of three holders, one after the other."""
    with redis.Redis.from_url(f"redis://{node}", decode_responses=True) as client:
        for token in ("first", "second", "third"):
            granted, fence, _ = client.execute_command("LOCK.ACQUIRE", "invoice/42", token, 10_000)
            assert granted == 1
            yield fence
            assert client.execute_command("LOCK.RELEASE", "invoice/42", token) == 1


def check(write, read, tokens):
    """What every resource owes: writes by the holder, as often as it likes, and none by an earlier one."""
    first, second, third = tokens
    assert write(second, "sent"), "the first write ever"
    assert write(second, "sent"), "the holder writes the same once more"
    assert not write(first, "late"), "a late holder"
    assert read() == "sent"
    assert write(third, "sent"), "the next holder writes what is there"
    assert not write(second, "late"), "a holder that is late by one"
    assert write(third, "paid") and read() == "paid"
    # Many at once: who wins is the highest, whatever the order.
    tokens = [third + number for number in range(1, 9)]
    writers = [threading.Thread(target=write, args=(token, str(token))) for token in tokens]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert read() == str(tokens[-1])


def database(connect, tokens, style):
    """The two ways in SQL: a fence in the row, and a row of fences for all that one lock protects."""
    with contextlib.closing(connect()) as setup:
        for statement in (
            "CREATE TABLE invoices (id integer PRIMARY KEY, state varchar(20), fence bigint NOT NULL DEFAULT 0)",
            "CREATE TABLE fences (name varchar(200) PRIMARY KEY, fence bigint NOT NULL)",
            "INSERT INTO invoices (id) VALUES (42)",
            "INSERT INTO fences VALUES ('invoices', 0)",
        ):
            setup.cursor().execute(statement)
        setup.commit()

    def execute(connection, statement, **values):
        cursor = connection.cursor()
        cursor.execute(style(statement), values)
        return cursor

    def update(fence, state):
        with contextlib.closing(connect()) as connection:
            changed = execute(connection, UPDATE, fence=fence, state=state).rowcount
            connection.commit()
            return changed == 1

    def claim(fence, state):
        with contextlib.closing(connect()) as connection:
            if execute(connection, CLAIM, fence=fence).rowcount == 0:
                return False
            execute(connection, "UPDATE invoices SET state = %(state)s WHERE id = 42", state=state)
            connection.commit()
            return True

    def read():
        with contextlib.closing(connect()) as connection:
            return execute(connection, "SELECT state FROM invoices WHERE id = 42").fetchone()[0]

    check(update, read, tokens)
    check(claim, read, tokens)


def sqlite(place, tokens):
    path = os.path.join(place, "invoices.db")
    database(
        lambda: sqlite3.connect(path, timeout=10),
        tokens,
        lambda statement: statement.replace("%(fence)s", ":fence").replace("%(state)s", ":state"),
    )
    return f"SQLite {sqlite3.sqlite_version}"


def postgres(place, tokens):
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not programs:
        return None
    data = os.path.join(place, "postgres")
    user = {"user": "postgres"} if os.getuid() == 0 else {}
    os.mkdir(data)
    if user:
        os.chmod(place, 0o755)
        shutil.chown(data, "postgres")
    subprocess.run(
        [f"{programs[-1]}/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, cwd="/", **user,
    )
    command = [f"{programs[-1]}/postgres", "-D", data, "-k", data, "-c", "listen_addresses=", "-c", "fsync=off"]
    with running(command, cwd="/", **user):
        connect = lambda: psycopg.connect(f"host={data} user=postgres dbname=postgres")
        version = eventually(lambda: connect().execute("SHOW server_version").fetchone()[0])
        database(connect, tokens, lambda statement: statement)
    return f"PostgreSQL {version.split()[0]}"


def mariadb(place, tokens):
    server = shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin")
    if not server or not shutil.which("mariadb-install-db"):
        return None
    data = os.path.join(place, "mariadb")
    path = os.path.join(data, "socket")
    user = f"--user={'root' if os.getuid() == 0 else os.environ.get('USER', '')}"
    options = ["--no-defaults", f"--datadir={data}", user]
    subprocess.run(
        ["mariadb-install-db", *options, "--auth-root-authentication-method=normal", "--skip-test-db"],
        check=True, stdout=subprocess.DEVNULL,
    )
    with running([server, *options, "--skip-networking", f"--socket={path}", "--innodb-flush-log-at-trx-commit=0"]):
        # Without FOUND_ROWS a row counts only if the statement changed it.
        connect = lambda: pymysql.connect(
            unix_socket=path, user="root", database="test", client_flag=pymysql.constants.CLIENT.FOUND_ROWS
        )
        admin = eventually(lambda: pymysql.connect(unix_socket=path, user="root"))
        cursor = admin.cursor()
        cursor.execute("CREATE DATABASE test")
        database(connect, tokens, lambda statement: statement)
        cursor.execute("SELECT VERSION()")
        return f"MariaDB {cursor.fetchone()[0].split('-')[0]}"


def redis_script(_, tokens):
    address = os.environ["INTEROP_REFERENCE"]
    if not address:
        return None
    client = redis.Redis.from_url(f"redis://{address}", decode_responses=True)
    client.delete("invoice:42")
    script = client.register_script(SCRIPT)
    check(
        lambda fence, state: script(keys=["invoice:42"], args=[fence, state]) == 1,
        lambda: client.hget("invoice:42", "state"),
        tokens,
    )
    return f"Redis {client.info('server')['redis_version']}"


def object_store(place, tokens):
    address = f"http://127.0.0.1:{free_port()}"
    os.environ |= {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    server = os.path.join(os.path.dirname(sys.executable), "moto_server")
    with running([server, "-H", "127.0.0.1", "-p", address.rsplit(":", 1)[1]], cwd=place):
        s3 = boto3.client("s3", endpoint_url=address)
        eventually(lambda: s3.create_bucket(Bucket="office"))
        check(
            lambda fence, state: put(s3, "office", "invoice/42", fence, state),
            lambda: json.load(s3.get_object(Bucket="office", Key="invoice/42")["Body"])["state"],
            tokens,
        )
    return f"S3 as moto {moto.__version__} has it"


def service(_, tokens):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Invoices) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            check(
                lambda fence, state: accepted(f"http://127.0.0.1:{server.server_port}/invoice/42", fence, state),
                lambda: Invoices.stored["/invoice/42"][1].decode(),
                tokens,
            )
        finally:
            server.shutdown()
    return "an HTTP service"


def accepted(url, fence, state):
    request = urllib.request.Request(url, state.encode(), {"Fence": str(fence)}, method="PUT")
    try:
        return urllib.request.urlopen(request, timeout=10).status == 204
    except urllib.error.HTTPError as error:
        assert error.code == 412
        return False


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def eventually(ask):
    """What `ask` returns once the server serves; its error after 30 seconds."""
    end = time.monotonic() + 30
    while True:
        try:
            return ask()
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def running(command, **options):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options) as server:
        try:
            yield
        finally:
            server.terminate()


def main():
    node = os.environ["INTEROP_NODES"].split(",")[0]
    if os.environ["INTEROP_SERVER"] != "locknode":
        print("only a locknode counts its grants")
        sys.exit(77)
    tokens = list(holders(node))
    assert tokens == sorted(set(tokens))
    checked = []
    for resource in (sqlite, postgres, mariadb, redis_script, object_store, service):
        with tempfile.TemporaryDirectory() as place:
            name = resource(place, tokens)
        if name is None:
            print(f"{resource.__name__}: not installed")
        else:
            checked.append(name)
    print(f"fencing checks of docs/fencing.md ({', '.join(checked)})")


main()
