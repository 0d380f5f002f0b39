"""A Ray cluster of simulated nodes on this machine: `python ray_nodes.py COUNT` prints its address;
a line on stdin kills one node, the end of stdin all.
"""

import sys

from ray.cluster_utils import Cluster

_OBJECTS = 80_000_000


def main(count):
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _OBJECTS}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = [
            cluster.add_node(num_cpus=1, object_store_memory=_OBJECTS, wait=False)
            for _ in range(count)
        ]
        cluster.wait_for_nodes()
        print(cluster.address, flush=True)
        for _ in sys.stdin:
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            print("killed", flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
