"""Python without torch: SQLite, threads, a server on a socket."""

import json
import socket
import sqlite3
import sys
import threading

server = socket.create_server(("127.0.0.1", 0))


def serve():
    connection, _ = server.accept()
    with connection:
        connection.sendall(connection.recv(100)[::-1])


thread = threading.Thread(target=serve)
thread.start()
with socket.create_connection(server.getsockname()) as client:
    client.sendall(b"drawer")
    print(client.recv(100))
thread.join()
base = sqlite3.connect("base.db")
base.execute("create table t (x)")
base.executemany("insert into t values (?)", [(number,) for number in range(100)])
base.commit()
print(json.dumps(base.execute("select sum(x) from t").fetchall()), "torch" in sys.modules)
sys.exit(-3)
