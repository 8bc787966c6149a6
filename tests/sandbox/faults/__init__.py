"""The whole program under scripted faults over real HTTP."""
