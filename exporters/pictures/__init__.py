"""Drawings as SVG and PNG, with colours and textures that tell things apart for everybody."""
