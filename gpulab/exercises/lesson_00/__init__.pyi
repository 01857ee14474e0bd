from ._figures import beside_recorded as beside_recorded
