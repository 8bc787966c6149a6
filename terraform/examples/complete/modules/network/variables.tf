variable "name" {
  description = "Name of everything here."
  type        = string
  nullable    = false
}

variable "zones" {
  description = "Availability zones, at most six."
  type        = list(string)
  nullable    = false
}
