"""`fairlane film`: one film over one link with several algorithms; quality by frame, freezes and delay."""
