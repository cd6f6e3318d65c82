"""`fairlane film`: one film over one link by several algorithms; quality by frame, freezes and delay."""
