from fairlane.bmv2.connection import check_JSON_md5, get_json_config, thrift_connect, thrift_connect_standard

__all__ = ["check_JSON_md5", "get_json_config", "thrift_connect", "thrift_connect_standard"]
