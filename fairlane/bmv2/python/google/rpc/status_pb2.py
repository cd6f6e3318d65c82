from fairlane.bmv2 import messages

messages.alias(__name__)
