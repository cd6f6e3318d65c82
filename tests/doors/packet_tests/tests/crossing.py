"""A frame crosses; with an entry it goes back to where it came from."""

import ptf
import ptf.testutils as tu
from p4runtime_sh import shell
from ptf.base_tests import BaseTest


class CrossingTest(BaseTest):
    def setUp(self):
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        given = tu.test_params_get()
        config = shell.FwdPipeConfig(given["p4info"], given["config"])
        shell.setup(device_id=0, grpc_addr=given["grpcaddr"], election_id=(0, 1), config=config)

    def tearDown(self):
        shell.teardown()

    def runTest(self):
        frame = tu.simple_tcp_packet(eth_dst="00:00:00:00:00:02")
        tu.send_packet(self, 0, frame)
        tu.verify_packets(self, frame, [1])
        entry = shell.TableEntry("hosts")(action="to_port")
        entry.match["h.ethernet.destination"] = "00:00:00:00:00:02"
        entry.action["port"] = "0"
        entry.insert()
        tu.send_packet(self, 0, frame)
        tu.verify_packets(self, frame, [0])
