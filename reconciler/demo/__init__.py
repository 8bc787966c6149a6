"""The main job end to end in the sandbox, narrated."""
