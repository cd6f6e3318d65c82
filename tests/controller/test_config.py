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


def many_routes(count):
    """To so many prefixes, in turns by three ways, of which one has two ports."""
    macs = {"src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:02"}
    ways = [{"port": 1, **macs}, {"port": 2, **macs}, {"port": 2, **macs, "others": [{"port": 1, **macs}]}]
    return [{"prefix": f"10.{n >> 8}.{n & 255}.0/24", **ways[n % 3]} for n in range(count)]


def test_a_table_of_many_routes_is_written_by_its_ways():
    large = copy.deepcopy(GOOD)
    large["switches"][0]["routes"] = many_routes(1000)
    config = parse(large)
    text = to_json(config)
    written = json.loads(text)["switches"][0]["routes"]
    assert len(written["ways"]) == 3 and list(written["to"].items())[:4] == [
        ("10.0.0.0/24", 0),
        ("10.0.1.0/24", 1),
        ("10.0.2.0/24", 2),
        ("10.0.3.0/24", 0),
    ]
    assert parse(json.loads(text)) == config
    assert len(text) < 40 * 1000 and len(json.dumps(large, indent=1)) > 120 * 1000


def test_a_table_of_few_routes_is_a_list():
    small = copy.deepcopy(GOOD)
    small["switches"][0]["routes"] = many_routes(256)
    assert json.loads(to_json(parse(small)))["switches"][0]["routes"] == many_routes(256)


@pytest.mark.parametrize(
    ("routes", "message"),
    [
        ({"ways": []}, r"switches\[0\].routes: expected a list, or an object"),
        ({"ways": [], "to": {"10.0.0.0/24": 0}}, r"switches\[0\].routes.to.10.0.0.0/24: expected the number of a way"),
        ({"ways": [{"port": 1}], "to": {"10.0.0.0/24": True}}, r"routes.to.10.0.0.0/24: expected the number of a way, 0 to 0, got True"),
        ({"ways": [{"port": 1}], "to": {"10.0.0.0/24": 0}}, r"routes\[0\].src_mac: missing"),
        ({"ways": [{"port": 7, "src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:02"}], "to": {"10.0.0.0/24": 0}}, r"no port 7"),
    ],
)  # fmt: skip
def test_errors_of_ways_name_the_key(routes, message):
    bad = copy.deepcopy(GOOD)
    bad["switches"][0]["routes"] = routes
    with pytest.raises(ConfigError, match=message):
        parse(bad)


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
