#!/bin/sh
# Terraform, attached to the providers of ATTACHED_PROVIDERS: see kept_provider.py.
if [ "$1" != init ]; then
  export TF_REATTACH_PROVIDERS="$ATTACHED_PROVIDERS"
fi
exec terraform "$@"
