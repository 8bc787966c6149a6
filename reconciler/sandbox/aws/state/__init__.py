"""EC2 Fleets and Auto Scaling groups as EC2 has them: pure logic, driven by a given time."""
