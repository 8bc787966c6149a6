# The example plans as a whole. The provider is a mock: no run here proves what AWS answers.
mock_provider "aws" {
  mock_data "aws_availability_zones" {
    defaults = { names = ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"] }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_subnet" {
    defaults = { id = "subnet-0aa" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/node" }
  }
  mock_resource "aws_iam_openid_connect_provider" {
    defaults = { arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:us-west-2:123456789012:queue", url = "https://sqs.us-west-2.amazonaws.com/123456789012/queue" }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:us-west-2:123456789012:rule/rule" }
  }
  mock_resource "aws_eks_cluster" {
    defaults = {
      identity   = [{ oidc = [{ issuer = "https://oidc.eks.us-west-2.amazonaws.com/id/ABC" }] }]
      vpc_config = { cluster_security_group_id = "sg-0aa", vpc_id = "vpc-0aa" }
    }
  }
}

run "accepts_its_defaults" {
  command = apply

  variables {
    ami = "ami-0aa"
  }

  assert {
    condition     = length(module.network.private_subnet_ids) == 3 && keys(output.fleet_id) == ["primary-small"]
    error_message = "the example does not make a fleet over three zones"
  }

  assert {
    condition     = yamldecode(output.sector_config).terraform.private_subnet_ids == module.network.private_subnet_ids
    error_message = "the sector config's fleets would be elsewhere"
  }
}

run "accepts_a_region_with_two_zones" {
  command = apply

  variables {
    ami = "ami-0aa"
  }

  override_data {
    target = data.aws_availability_zones.available
    values = { names = ["us-west-1a", "us-west-1c"] }
  }

  assert {
    condition     = length(module.network.private_subnet_ids) == 2
    error_message = "a Region with two zones has no cluster"
  }
}
