import copy
import json

import pytest

from fairlane.controller.config import ConfigError, mac, parse, read, to_json

GOOD = {
    "p4info": "a.p4info.txtpb",
    "bmv2_json": "a.json",
    "switches": [
        {
            "name": "s1",
            "device_id": 1,
            "address": "127.0.0.1:9559",
            "ports": [
                {"number": 1, "rate_bps": 10_000_000, "red": {"minimum_packets": 50, "maximum_packets": 95, "max_p": 0.1, "weight": 0.002}},
                {"number": 2, "rate_bps": 100_000_000},
            ],
            "routes": [{"prefix": "10.0.1.0/24", "port": 1, "src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:02"}],
        },
        {
            "name": "s2",
            "device_id": 2,
            "address": "127.0.0.1:9560",
            "ports": [{"number": 4, "rate_bps": 10_000_000, "peer": "s1", "peer_port": 2}],
        },
    ],
    "igmp": {"query_interval_s": 20, "query_response_s": 5},
}
GOOD["switches"][0]["ports"][1].update(peer="s2", peer_port=4)


def test_round_trip():
    config = parse(GOOD)
    assert parse(json.loads(to_json(config))) == config
    assert config.igmp.membership_interval_s == 45


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["switches", 0, "ports", 0, "rate_bps"], 0, r"switches\[0\].ports\[0\].rate_bps: must be positive"),
        (["switches", 0, "ports", 1, "number"], 1, r"switches\[0\].ports: two entries have number 1"),
        (["switches", 0, "routes", 0, "port"], 9, r"switches\[0\].routes\[0\].port: switch s1 has no port 9"),
        (["switches", 0, "routes", 0, "prefix"], "10.0.1.1/24", r"routes\[0\].prefix: .*host bits"),
        (["switches", 0, "routes", 0, "dst_mac"], "02:00", r"routes\[0\].dst_mac: '02:00' is not"),
        (["switches", 0, "ports", 0, "red", "max_p"], 0, r"switches\[0\].ports\[0\].red: max_p"),
        (["switches", 0, "ports", 1, "peer"], "s3", r"switches\[0\].ports\[1\].peer: no switch 's3'"),
        (["switches", 0, "ports", 1, "peer_port"], 5, r"switches\[0\].ports\[1\].peer: port 5 of s2 does not lead back to port 2 of s1"),
        (["switches", 1, "ports", 0, "peer_port"], 1, r"switches\[0\].ports\[1\].peer: port 4 of s2 does not lead back to port 2 of s1"),
        (["igmp", "query_interval_s"], 5, r"igmp: query_interval_s: 0 or more than query_response_s"),
        (["igmp", "robustness"], 0, r"igmp: robustness: at least 1"),
        (["switches", 0, "colour"], 1, r"switches\[0\].colour: unknown key"),
        (["utilisation_target"], 1.5, r"utilisation_target"),
        (["grace_s"], 2, r"grace_s"),
        (["switches"], [], r"switches: at least one"),
        (["switches", 0, "device_id"], "1", r"switches\[0\].device_id: expected int"),
    ],
)
def test_errors_name_the_key(path, value, message):
    bad = copy.deepcopy(GOOD)
    inner = bad
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(ConfigError, match=message):
        parse(bad)


def test_missing_key_and_missing_file_are_named(tmp_path):
    bad = copy.deepcopy(GOOD)
    del bad["switches"][0]["address"]
    with pytest.raises(ConfigError, match=r"switches\[0\].address: missing"):
        parse(bad)
    with pytest.raises(ConfigError, match="nowhere.json"):
        read(tmp_path / "nowhere.json")
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(GOOD)[:50])
    with pytest.raises(ConfigError, match="cut.json"):
        read(cut)


def test_mac():
    assert mac("02:00:00:00:01:ff") == 0x0200000001FF
