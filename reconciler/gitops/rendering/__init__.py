"""From a sector config to the files of a root module. Nothing here reads Terraform or a forge."""
