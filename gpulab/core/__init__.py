"""What every part of the package uses: errors, checks of arguments, units, files, text."""
