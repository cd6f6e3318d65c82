"""The control plane of labels.p4: each host has a label, and each switch knows the way to it."""

from fairlane.controller.plane import ControlPlane, Host, Switch


class Labels(ControlPlane):
    interval_s = 1.0

    def label(self, host: Host) -> int:
        """From 1, in the order of the hosts."""
        return list(self.hosts).index(host.name) + 1

    def on_start(self, switch: Switch) -> None:
        enter, labels = switch.table("Switching.enter"), switch.table("Switching.switch_label")
        for host in self.hosts.values():
            port, key = switch.toward[host.name], {"hdr.ipv4.destination": host.ip}
            label = {"hdr.label.label": self.label(host)}
            if host.switch == switch.name:
                enter.insert(key, "Switching.deliver", {"port": port, "mac": host.mac})
                labels.insert(label, "Switching.pop", {"port": port, "mac": host.mac})
            else:
                enter.insert(key, "Switching.push", {"label": self.label(host), "port": port})
                labels.insert(label, "Switching.forward", {"port": port})

    async def on_interval(self) -> None:
        """What entered at each switch for each host, in all."""
        for switch in self.switches.values():
            counts = await switch.counter("Switching.carried").read_all()
            for host in self.hosts.values():
                count = counts[self.label(host)]
                if count.packets:
                    self.record(switch=switch.name, host=host.name, packets=count.packets, bytes=count.bytes)
