"""A P4Runtime client for the ptf tests, from the messages that p4runtime-shell brings; no code of this project."""

import queue
import threading
from pathlib import Path

import grpc
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4r
from p4.v1 import p4runtime_pb2_grpc

DEVICE_ID = 1
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


def number(value):
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Controller:
    """A session with one election id. Messages of the stream wait in a queue for each kind."""

    def __init__(self, address, p4info, election_id):
        self.info = text_format.Parse(Path(p4info).read_text(), p4info_pb2.P4Info())
        self.ids = {}
        for group in (
            self.info.tables,
            self.info.actions,
            self.info.counters,
            self.info.meters,
            self.info.registers,
            self.info.digests,
            self.info.action_profiles,
            self.info.value_sets,
            self.info.direct_counters,
        ):
            for item in group:
                self.ids[item.preamble.alias] = item.preamble.id
        self.election_id = election_id
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self._requests = queue.Queue()
        self.received = {kind: queue.Queue() for kind in ("arbitration", "packet", "digest", "idle_timeout_notification", "error")}
        self._call = self.stub.StreamChannel(iter(self._requests.get, None))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self._call:
                kind = message.WhichOneof("update")
                self.received[kind].put(getattr(message, kind))
        except grpc.RpcError:
            pass

    def send(self, **update):
        self._requests.put(p4r.StreamMessageRequest(**update))

    def arbitrate(self):
        """The code of the answer: 0 for the primary."""
        update = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID, election_id=p4r.Uint128(low=self.election_id))
        self.send(arbitration=update)
        return self.next("arbitration").status.code

    def next(self, kind, timeout=20):
        try:
            return self.received[kind].get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no {kind} within {timeout} s") from None

    def none(self, kind, during=0.3):
        try:
            message = self.received[kind].get(timeout=during)
        except queue.Empty:
            return
        raise AssertionError(f"unexpected {kind}: {message}")

    def close(self):
        self._requests.put(None)
        self._call.cancel()
        self.channel.close()

    def push(self, json):
        request = p4r.SetForwardingPipelineConfigRequest(device_id=DEVICE_ID, election_id=p4r.Uint128(low=self.election_id))
        request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.info)
        request.config.p4_device_config = Path(json).read_bytes()
        self.stub.SetForwardingPipelineConfig(request, timeout=30)

    def write(self, kind, **entity):
        request = p4r.WriteRequest(device_id=DEVICE_ID, election_id=p4r.Uint128(low=self.election_id))
        update = request.updates.add(type=kind)
        update.entity.CopyFrom(p4r.Entity(**entity))
        self.stub.Write(request, timeout=30)

    def read(self, **entity):
        request = p4r.ReadRequest(device_id=DEVICE_ID, entities=[p4r.Entity(**entity)])
        (name,) = entity
        return [getattr(e, name) for response in self.stub.Read(request, timeout=30) for e in response.entities]

    def action(self, name, *values):
        spec = next(a for a in self.info.actions if a.preamble.alias == name)
        params = [p4r.Action.Param(param_id=p.id, value=number(v)) for p, v in zip(spec.params, values)]
        return p4r.Action(action_id=spec.preamble.id, params=params)

    def entry(self, table, match=(), action=None, **more):
        """match: (field id, kind, values...). action: an Action, or a TableAction for members and groups."""
        entry = p4r.TableEntry(table_id=self.ids[table], **more)
        for field, kind, *values in match:
            key = entry.match.add(field_id=field)
            if kind == "exact":
                key.exact.value = number(values[0])
            elif kind == "lpm":
                key.lpm.value, key.lpm.prefix_len = number(values[0]), values[1]
            elif kind == "ternary":
                key.ternary.value, key.ternary.mask = number(values[0]), number(values[1])
            elif kind == "range":
                key.range.low, key.range.high = number(values[0]), number(values[1])
            else:
                key.optional.value = number(values[0])
        if isinstance(action, p4r.Action):
            entry.action.action.CopyFrom(action)
        elif action is not None:
            entry.action.CopyFrom(action)
        return entry

    def insert(self, *entry, **more):
        self.write(INSERT, table_entry=self.entry(*entry, **more))
