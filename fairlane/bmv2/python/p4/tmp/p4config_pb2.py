from fairlane.bmv2 import messages

P4DeviceConfig = messages.device_config()
