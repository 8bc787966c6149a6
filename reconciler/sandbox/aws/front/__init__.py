"""What a call passes before it is answered: its log, its refusal, or the control API."""
