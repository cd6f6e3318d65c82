import _bmv2_names

if _bmv2_names.publish("switch_cli", "sswitch_CLI", globals()) and __name__ == "__main__":
    globals()["main"]()
