"""The control plane of plane_events.p4: each kind of event and call, told in raw/control.jsonl."""

from ipaddress import IPv4Address

from fairlane.controller.plane import ControlPlane, Group, SwitchRefused


class Events(ControlPlane):
    interval_s = 0.5

    def __init__(self):
        self.asked = set()

    async def on_start(self, switch):
        for host in self.hosts.values():
            if host.switch == switch.name:
                switch.multicast_group(host.port, [host.port])
        switch.register("I.limit").write(0, 3)
        for port in switch.ports:
            await switch.meter("I.rates").set(port, cir=1, cburst=2000, pir=1, pburst=4000)
        spread = switch.selector("I.spread")
        for i in (1, 2):
            spread.member(i, "I.mark", {"value": i})
        spread.group(1, [1, 2], max_size=4)
        marks = switch.table("I.marks")
        await marks.insert({"hdr.ipv4.source": ("10.0.0.0", "255.0.0.0"), "hdr.ethernet.type": (0, 0x8000)}, Group(1), priority=7)
        self.record(event="start", switch=switch.name, marks=[repr(entry) for entry in await marks.read()])
        try:
            await switch.table("I.route").delete({"hdr.ipv4.destination": "10.9.9.0/24"})
        except SwitchRefused as refusal:
            self.record(event="refused", what=str(refusal))

    def on_packet_in(self, switch, packet):
        to = str(IPv4Address(packet.payload[30:34]))
        host = next(host for host in self.hosts.values() if host.ip == to)
        port = switch.toward[host.name]
        self.record(event="packet", switch=switch.name, to=to, fields=packet.fields)
        switch.packet_out(packet.payload, egress_port=port)
        if (switch.name, to) in self.asked:
            return  # more packets were on their way when the first came
        self.asked.add((switch.name, to))
        route = switch.table("I.route")
        if host.switch == switch.name:
            route.insert({"hdr.ipv4.destination": (to, 32)}, "I.copies", {"group": host.port, "mac": host.mac}, idle_timeout_s=0.4)
        else:
            route.insert({"hdr.ipv4.destination": f"{to}/32"}, "I.send", {"port": port, "mac": switch.ports[port].mac}, idle_timeout_s=0.4)
        route.set_meter({"hdr.ipv4.destination": f"{to}/32"}, cir=1, cburst=2000, pir=1, pburst=4000)

    def on_digest(self, switch, digest):
        self.record(event="digest", switch=switch.name, name=digest.name, values=digest.values)

    def on_idle_timeout(self, switch, entry):
        self.record(event="idle", switch=switch.name, keys=entry.keys, action=entry.action, values=entry.values)
        switch.table(entry.table).delete(entry.keys)
        self.asked.discard((switch.name, str(IPv4Address(entry.keys["hdr.ipv4.destination"][0]))))

    def on_port_change(self, switch, port):
        self.record(event="port", switch=switch.name, port=port.number, rate_bps=port.rate_bps)

    async def on_interval(self):
        switch = self.switches["s1"]
        counts = await switch.counter("I.by_port").read_all()
        self.record(
            event="interval",
            packets=await switch.register("I.packets").read(0),
            colours=[count.packets for count in counts[:3]],
            paced=counts[3].packets,
            routes=[[entry.keys, entry.action, entry.packets] for entry in await switch.table("I.route").read()],
        )
